import { addr, hex } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import { sharedBy } from '../../text/index.js';
import type {
  ArgumentValue,
  AwaitLink,
  Cancelled,
  Gap,
  HartInfo,
  OwnTime,
  PlaceHit,
  RootRef,
  StackEntry,
  StateRef,
  Stuck,
  TaskAbout,
  ThreadRef,
  TraceFacts,
  TraceInfo,
  Wake,
  WatchHit,
} from './events.js';
import { calledOf } from './future-names.js';

/** `src/work.rs:34`, `src/work.rs`, or undefined where no file is known. */
export function placeText(place: { file: string | undefined; line: number | undefined }): string | undefined {
  if (place.file === undefined) return undefined;
  return place.line === undefined ? place.file : `${place.file}:${place.line}`;
}

/** ` at src/work.rs:34`, or nothing where no file is known. */
function at(place: { file: string | undefined; line: number | undefined }): string {
  const text = placeText(place);
  return text === undefined ? '' : ` at ${text}`;
}

/**
 * A task's name in a trace: `labkern::work::chain_task @0x80412340`, or `.. of space 0x80254000 @0x80412340`. A part of
 * one that is not known: `part of a task: labkern::work::level3 @0x80412360`.
 */
export function rootText(root: RootRef): string {
  return `${root.isPart ? 'part of a task: ' : ''}${calledOf(root.future)}${spaceText(root)} @${hex(root.address)}`;
}

/** What a task's Future is called, its space and its address: {@link rootText} backwards. */
export function rootOf(text: string): (Pick<RootRef, 'address' | 'space' | 'isPart'> & { name: string }) | undefined {
  const [, part, name, space, address] =
    /^(part of a task: )?(.*?)(?: of space (0x[\da-f]{1,16}))? @(0x[\da-f]{1,16})$/s.exec(text) ?? [];
  if (name === undefined || address === undefined) return undefined;
  const isPart = part === undefined ? undefined : true;
  return { name, space: space === undefined ? undefined : addr(BigInt(space)), address: addr(BigInt(address)), isPart };
}

/** What a runtime knows of a task: `tokio, id 12, spawned at src/main.rs:3:5`; `embassy, named blink`. */
export function aboutText({ runtime, id, name, spawned }: TaskAbout): string {
  const parts = [runtime];
  if (id !== undefined) parts.push(`id ${id}`);
  if (spawned !== undefined) parts.push(`spawned at ${spawned}`);
  if (name !== undefined) parts.push(`named ${name}`);
  return parts.join(', ');
}

/** The same backwards; undefined if the text is another one. */
export function aboutOf(text: string): TaskAbout | undefined {
  const found = /^([\w-]+)(?:, id (\d+))?(?:, spawned at (.*?))?(?:, named (.*))?$/s.exec(text);
  if (!found) return undefined;
  const [, runtime = '', id, spawned, name] = found;
  return {
    runtime,
    id: id === undefined ? undefined : Number(id),
    name,
    spawned,
  };
}

/**
 * A thread's name in a trace: `thread init:1 at 0xff60000000a3c000`, `stack 0xff20000000014000`, or
 * `stack 0x80211000 of space 0x80254000`, with ` in shell` where several programs are traced.
 */
export function threadText({ stack, name, space, program }: ThreadRef): string {
  if (name !== undefined) return `thread ${name} at ${hex(stack)}${program === undefined ? '' : ` in ${program}`}`;
  return `stack ${hex(stack)}${spaceText({ space })}${program === undefined ? '' : ` in ${program}`}`;
}

/** `labkern::work::level3 at src/work.rs:34`. */
export function linkText({ future, typeName, state }: Pick<AwaitLink, 'future' | 'typeName' | 'state'>): string {
  const name = future === undefined ? typeName : future.future;
  return state === undefined ? name : `${name}${at(state) || ` (${state.name})`}`;
}

const gapBegin = 'not recorded: ';
const brokenLink = 'the link to the stub was broken';

/** What a gap in a trace is called. */
export function gapText({ why = brokenLink }: Pick<Gap, 'why'>): string {
  return `${gapBegin}${why}`;
}

/** The reason in a gap's name; undefined if the link was broken. */
export function gapReason(name: string): string | undefined {
  const why = name.startsWith(gapBegin) ? name.slice(gapBegin.length) : brokenLink;
  return why === brokenLink ? undefined : why;
}

/** What a reset in a trace is called. */
export const resetText = 'the machine was reset';

/** A stack in one line, innermost first: `work::leaf at src/work.rs:3 < exec::poll_task at src/exec.rs:74`. */
export function stackText(stack: readonly StackEntry[]): string {
  return stack.map((entry) => `${entry.function ?? '??'}${at(entry)}`).join(' < ');
}

/** `labkern::exec::poll_task at src/exec.rs:88`; an address if nothing is known about the code. */
export function actorText({ by, pc }: WatchHit): string {
  return `${by.function ?? hex(pc)}${at(by)}`;
}

/** `src/work.rs:42 in labkern::work::deep0`. */
export function placeHitText({ place: { name, by } }: PlaceHit): string {
  return by.function === undefined ? name : `${name} in ${by.function}`;
}

/** `wake of labkern::work::joiner @0x80412340 by itself, in labkern::exec::timer_tick at src/exec.rs:118`. */
export function wakeText(wake: Wake): string {
  const { root, waker, caller } = wake;
  return `wake of ${root === undefined ? hex(waker) : rootText(root)} by ${wakerText(wake)}${callerText(caller)}`;
}

/**
 * The same of wakes that are alike, so without addresses:
 * `labkern::work::producer in labkern::futs::send at src/futs.rs:3`.
 */
export function wakeSourceText(
  { root, by, caller }: Wake,
  shown = (place: string): string => place,
  waker = by && calledOf(by.future),
): string {
  const place = placeText(caller);
  const who = by === undefined ? 'no task' : by === root ? 'itself' : waker;
  const where = caller.function === undefined ? '' : ` in ${caller.function}`;
  return `${who}${where}${place === undefined ? '' : ` at ${shown(place)}`}`;
}

/** `labkern::work::loser @0x80412340 was dropped at src/work.rs:3, by labkern::work::selector @0x80412300`. */
export function cancelText(event: Cancelled): string {
  const { future, address, state } = event;
  return `${calledOf(future)} @${hex(address)} was dropped${state ? at(state) : ''} ${howDropped(event)}`;
}

/** `labkern::work::payer @0x80412340 is in a deadlock at src/work.rs:51: it waits for Mutex .., held by task 3`. */
export function stuckText(event: Stuck): string {
  const { future, address, why, wait } = event;
  return `${calledOf(future)} @${hex(address)} ${stuckWords[why]}${at(event)}: it ${wait}`;
}

const stuckWords = {
  deadlock: 'is in a deadlock',
  'likely-deadlock': 'is likely in a deadlock',
  'lost-wake': 'has lost its wake',
} as const;

const impliedTexts = {
  replaced: 'before another one began there',
  'holder-ended': 'before the Future that held it ended',
} as const;

function howDropped(event: Cancelled): string {
  if (event.implied === undefined) return `by ${dropperText(event)}`;
  const by = event.by === undefined ? '' : `by ${wakerText(event)}, `;
  return `${by}${impliedTexts[event.implied]}`;
}

/** `labkern::work::selector @0x80412300, in labkern::work::run at src/work.rs:7`; `no task`. */
export function dropperText(event: Cancelled): string {
  return `${wakerText(event)}${callerText(event.caller)}`;
}

function callerText(caller: StackEntry): string {
  return caller.function === undefined ? '' : `, in ${caller.function}${at(caller)}`;
}

/** Who woke or dropped: `itself`, another task, or `no task`. */
export function wakerText({ root, by }: Pick<Wake, 'root' | 'by'>): string {
  return by === undefined ? 'no task' : by === root ? 'itself' : rootText(by);
}

/** `4 -> 5`, `5, unchanged`, `read 5`, `accessed 5`; `?` stands for what could not be read. */
export function accessText({ access, old, value, changed }: WatchHit): string {
  const now = value ?? '?';
  if (access !== 'write') return `${access === 'read' ? 'read' : 'accessed'} ${now}`;
  return changed === false ? `${now}, unchanged` : `${old ?? '?'} -> ${now}`;
}

/** `x: 3, y: 0x80401230`. */
export function argumentsText(values: readonly ArgumentValue[]): string {
  let text = '';
  for (const { name, value } of values) text += text === '' ? `${name}: ${value}` : `, ${name}: ${value}`;
  return text;
}

/** `Suspend0 at src/work.rs:34`, `Returned`. The place of `Panicked` would be the end of the function. */
export function stateText(state: StateRef): string {
  return madeOnce(states, state, () => (state.name === 'Panicked' ? state.name : `${state.name}${at(state)}`));
}

const states = new WeakMap<StateRef, string>();

function spaceText({ space }: Pick<RootRef, 'space'>): string {
  return space === undefined ? '' : ` of space ${hex(space)}`;
}

/**
 * The engine of each probe, by the probe's name: `without stops`, `stops: no memory for trampolines`. Instances of
 * one generic function share a name, and their addresses follow it. At the end the overhead in guest time, if that is
 * known.
 */
export function engineTexts({ probes, ownTime }: TraceFacts): [probe: string, engine: string][] {
  const isShared = sharedBy(probes, ({ name }) => name);
  const texts = probes.map((probe): [string, string] => {
    const { name, address, engine, why, extra } = probe;
    const text = `${engineText[engine]}${extra === undefined ? '' : ` (${extra})`}${why === undefined ? '' : `: ${why}`}`;
    return [isShared(probe) ? `${name} @${hex(address)}` : name, text];
  });
  return ownTime ? [...texts, ['guest time', ownTimeText(ownTime)]] : texts;
}

/** `an event took 61 to 190 ns of it, which durations leave out`. */
export function ownTimeText({ leastNs, mostNs }: OwnTime): string {
  const took = leastNs === mostNs ? `${leastNs}` : `${leastNs} to ${mostNs}`;
  return `an event took ${took} ns of it, which durations leave out`;
}

const engineText = { target: 'without stops', stop: 'stops', none: 'left out' };

/** What runs code is called: in a process a thread. */
export function hartWord({ isProcess = false }: Pick<TraceInfo, 'isProcess'>): 'hart' | 'thread' {
  return isProcess ? 'thread' : 'hart';
}

/** What each hart is called in texts: by its number, and a thread of a process by its name. */
export class HartLabels {
  #isProcess = false;
  readonly #names = new Map<number, string>();

  begin({ isProcess = false, harts }: Pick<TraceInfo, 'isProcess' | 'harts'>): void {
    this.#isProcess = isProcess;
    for (const hart of harts) this.hart(hart);
  }

  hart({ number, name }: HartInfo): void {
    this.#names.set(number, name);
  }

  of(number: number): string {
    const name = this.#isProcess ? this.#names.get(number) : undefined;
    return name ?? `${hartWord({ isProcess: this.#isProcess })} ${number}`;
  }
}
