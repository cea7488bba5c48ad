import { addr } from '../../../../base/addr.js';
import { madeOnce } from '../../../../base/made-once.js';
import type {
  DerivedPoll,
  GuestNanos,
  PlaceRef,
  PollBegin,
  ThreadRef,
  TraceEvent,
  Wake,
  WatchHit,
  WatchRef,
} from '../../../events/events.js';
import { addressNote, callerOf, learnt, type OwnRefs, type Root, textNote } from './own-refs.js';
import { entryOf, stackOf } from './refs.js';
import { NOTE } from './sequence.js';
import type { TrackEvent } from './track-event.js';

/** Where an instant is: a hart, a thread, a task. */
interface Place {
  readonly hart: number;
  readonly thread: ThreadRef | undefined;
  readonly root: Root | undefined;
}

/** Instants of a trace that rsptrace wrote, but for ends of slices. */
export class OwnInstants {
  readonly #emit: (event: TraceEvent) => void;
  readonly #refs: OwnRefs;
  readonly #places = new Map<string, PlaceRef>();
  readonly #watches = new Map<string, WatchRef>();
  /** Its value as a number comes in the next packet. */
  #watch: WatchHit | undefined;

  constructor(emit: (event: TraceEvent) => void, refs: OwnRefs) {
    this.#emit = emit;
    this.#refs = refs;
  }

  /** Emits an access that has waited for its value, now that the next packet is known. */
  flush(number: number | undefined): void {
    const watch = this.#watch;
    if (watch === undefined) return;
    this.#watch = undefined;
    this.#emit(number === undefined ? watch : { ...watch, number });
  }

  take(track: Place, event: TrackEvent): void {
    this.flush(undefined);
    switch (event.category) {
      case 'state':
        this.#state(track, event, false);
        break;
      case 'derived':
        // A poll that was derived has a result, a change of a state has none.
        if (event.notes[NOTE.result] === undefined) this.#state(track, event, true);
        else this.#derivedPoll(track, event);
        break;
      case 'watch':
        this.#watchHit(track, event);
        break;
      case 'wake':
        this.#wake(track, event);
        break;
      case 'cancelled':
        this.#cancelled(track, event);
        break;
      case 'stuck':
        this.#stuck(event);
        break;
      case 'reset':
        this.#emit({ type: 'reset', time: event.time as GuestNanos });
        break;
      case 'console':
        this.#emit({ type: 'console', time: event.time as GuestNanos, text: event.name });
        break;
      default:
        if (track.root === undefined && track.thread === undefined) this.#placeHit(track, event);
    }
  }

  #state({ root }: Place, event: TrackEvent, derived: boolean): void {
    if (root === undefined) return;
    const [from, to] = [this.#refs.stateOf(event, NOTE.state_before), this.#refs.stateOf(event, NOTE.state_after)];
    const suffix = `: ${to?.name ?? 'unknown state'}`;
    const name = event.name.endsWith(suffix) ? event.name.slice(0, -suffix.length) : event.name;
    this.#emit({
      type: 'state',
      ...this.#ofRoot(root, event, this.#refs.futureOf(event, undefined, name)),
      from,
      to,
      derived,
    });
  }

  #derivedPoll({ root }: Place, event: TrackEvent): void {
    if (root === undefined) return;
    const result = textNote(event, NOTE.result) as DerivedPoll['result'];
    const state = this.#refs.stateOf(event, NOTE.state_after);
    const future = this.#refs.futureOf(event, event.place);
    this.#emit({ type: 'derived-poll', ...this.#ofRoot(root, event, future), result, state });
  }

  #ofRoot(root: Root, event: TrackEvent, future: PollBegin['future']) {
    const address = addressNote(event, NOTE.address);
    const time = event.time as GuestNanos;
    return { time, hart: root.hart, root, future: learnt(root, future, address), address };
  }

  #watchHit({ hart }: Place, event: TrackEvent): void {
    const { notes } = event;
    const name = textNote(event, NOTE.watch) ?? event.name;
    const address = addressNote(event, NOTE.address);
    const watch = madeOnce<string, WatchRef>(this.#watches, `${name} ${address}`, () => {
      const type = textNote(event, NOTE.type) ?? '';
      return { key: this.#watches.size, name, access: 'rw', asked: 'rw', address, size: 8, type };
    });
    const by = entryOf(textNote(event, NOTE.by) ?? '??');
    const inlined = textNote(event, NOTE.inlined);
    const changed = notes[NOTE.changed];
    this.#watch = {
      type: 'watch',
      time: event.time as GuestNanos,
      hart,
      watch,
      access: (textNote(event, NOTE.access) as WatchHit['access'] | undefined) ?? 'access',
      old: textNote(event, NOTE.old),
      value: textNote(event, NOTE.value),
      number: undefined,
      changed: typeof changed === 'boolean' ? changed : undefined,
      pc: addressNote(event, NOTE.pc),
      by: by.function?.startsWith('0x') ? { ...by, function: undefined } : by,
      inlined: inlined === undefined ? [by] : stackOf(inlined),
    };
  }

  /** The task that something happens to, who does it, and where. */
  #roles(event: TrackEvent): Pick<Wake, 'root' | 'by' | 'caller'> {
    const root = this.#refs.rootNamed(textNote(event, NOTE.task));
    const by = textNote(event, NOTE.by);
    return { root, by: by === 'itself' ? root : this.#refs.rootNamed(by), caller: callerOf(event) };
  }

  #wake({ hart }: Place, event: TrackEvent): void {
    const time = event.time as GuestNanos;
    this.#emit({ type: 'wake', time, hart, waker: addressNote(event, NOTE.waker), ...this.#roles(event) });
  }

  #cancelled({ hart }: Place, event: TrackEvent): void {
    const time = event.time as GuestNanos;
    const roles = this.#roles(event);
    const address = addressNote(event, NOTE.address);
    const future = learnt(roles.root, this.#refs.futureOf(event), address);
    const state = this.#refs.stateOf(event, NOTE.state_before);
    const text = textNote(event, NOTE.implied);
    const implied = text === 'replaced' || text === 'holder-ended' ? text : undefined;
    this.#emit({ type: 'cancelled', time, hart, ...roles, future, address, state, implied });
  }

  #stuck(event: TrackEvent): void {
    const { name: why, place } = event;
    if (why !== 'deadlock' && why !== 'likely-deadlock' && why !== 'lost-wake') return;
    const time = event.time as GuestNanos;
    const root = this.#refs.rootNamed(textNote(event, NOTE.task));
    const address = addressNote(event, NOTE.task_address);
    const future = learnt(root, this.#refs.futureOf(event, undefined, textNote(event, NOTE.future)), address);
    const wait = textNote(event, NOTE.wait) ?? '';
    this.#emit({ type: 'stuck', time, root, address, why, future, wait, file: place?.file, line: place?.line });
  }

  #placeHit({ hart }: Place, event: TrackEvent): void {
    const { name, category, notes } = event;
    const address = notes[NOTE.address];
    if (typeof address !== 'bigint') return;
    const place = madeOnce(this.#places, `${category} ${name} ${address}`, () => {
      return {
        key: this.#places.size,
        name,
        category,
        address: addr(address),
        lock: textNote(event, NOTE.lock),
        by: callerOf(event),
      };
    });
    this.#emit({ type: 'place', time: event.time as GuestNanos, hart, place });
  }
}
