import type { Addr } from '../../../base/addr.js';
import type { AddressMap } from '../../../base/address-map.js';
import type { RootRef } from '../../../trace/index.js';
import type { Followed, ImpliedDrops } from './implied-drops.js';
import type { NotedPlace, NotedPoll } from './noted.js';

/** What is followed at one place before a task's poll, and after it. */
interface Place {
  readonly all: AddressMap<Followed>;
  readonly was: NotedPlace['was'];
  readonly future: Followed['future'];
  readonly address: Addr;
  /** `changed`: the same one, if it is followed in another way. */
  readonly effect: 'none' | 'changed' | 'gone' | 'new' | 'replaced';
  readonly is: Followed['is'];
  readonly state: Followed['state'];
}

/** What a poll of a task found among the Futures that are followed, and what it left there. */
export class FollowedPlaces {
  readonly #implied: ImpliedDrops;
  readonly #places: readonly Place[];
  /** How many of the task were followed before. */
  readonly #held: number;
  readonly #changed: readonly number[];
  readonly #follows: readonly number[];

  private constructor(implied: ImpliedDrops, places: readonly Place[], held: number, order: readonly number[]) {
    this.#implied = implied;
    this.#places = places;
    this.#held = held;
    const having = (...effects: Place['effect'][]): number[] =>
      [...places.keys()].filter((i) => effects.includes((places[i] as Place).effect));
    this.#changed = having('changed', 'gone', 'replaced');
    // What is followed anew stands behind all others, in the same order.
    this.#follows = order.filter((i) => having('new', 'replaced').includes(i));
  }

  /** Undefined if what was there was not all of this task. */
  static of(implied: ImpliedDrops, noted: NotedPoll, root: RootRef): FollowedPlaces | undefined {
    const after = [...implied.heldBy(root)];
    const places: Place[] = [];
    let held = 0;
    for (const each of [...noted.followed.values()].flatMap((all) => [...all.values()])) {
      const { ref: future, place, before, was } = each;
      const all = implied.placesOf(future);
      const now = all?.get(place);
      if (!all || (now && now.root !== root)) return undefined;
      if (was) held++;
      const isSame = now === before && now?.is === was?.is && now?.state === was?.state;
      const other = now === before ? 'changed' : before ? (now ? 'replaced' : 'gone') : 'new';
      const { is = 'pending', state } = now ?? {};
      places.push({ all, was, future, address: place as Addr, effect: isSame ? 'none' : other, is, state });
    }
    const order = after.map((one) => places.findIndex(({ all, address }) => all.get(address) === one));
    return order.includes(-1) ? undefined : new FollowedPlaces(implied, places, held, order);
  }

  get addresses(): readonly Addr[] {
    return this.#places.map(({ address }) => address);
  }

  /** Whether the same is found now. `at`: the addresses, moved with the task. */
  isFound(root: RootRef, at: readonly Addr[]): boolean {
    const places = this.#places;
    if (this.#implied.heldBy(root).size !== this.#held) return false;
    for (let i = 0; i < places.length; i++) {
      const { all, was } = places[i] as Place;
      const now = all.get(at[i] as Addr);
      if (was === undefined ? now !== undefined : now?.root !== root || now.is !== was.is || now.state !== was.state)
        return false;
    }
    return true;
  }

  leave(root: RootRef, at: readonly Addr[]): void {
    for (const i of this.#changed) {
      const { all, effect, is, state } = this.#places[i] as Place;
      const now = all.get(at[i] as Addr) as Followed;
      if (effect === 'changed') {
        now.is = is;
        now.state = state;
      } else this.#implied.unfollow(now);
    }
    for (const i of this.#follows) {
      const { future, is, state } = this.#places[i] as Place;
      this.#implied.follow({ root, future, address: at[i] as Addr, is, state });
    }
  }
}
