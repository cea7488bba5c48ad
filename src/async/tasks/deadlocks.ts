import type { Ender, Wait, Waits } from './waits.js';

/** Tasks that wait for each other: none of them will ever be woken. */
export interface Deadlock<T> {
  /** The tasks of a cycle, each with the wait that the next one could end; the last one's is ended by the first. */
  readonly cycle: readonly { readonly task: T; readonly wait: Wait<T> }[];
  /** Tasks outside of the cycle that wait for it. */
  readonly behind: readonly T[];
  /** One of its waits is `likely`. */
  readonly likely: boolean;
}

/**
 * Tasks that can only be woken by each other. A task is out of it if one of its waits may end from elsewhere: by a
 * timer, or by whom nothing is known of.
 */
export function findDeadlocks<T>(waits: Waits<T>): readonly Deadlock<T>[] {
  const sure = stuck(waits, ['all']);
  const found = cyclesIn(waits, sure, false);
  const more = stuck(waits, ['all', 'likely']);
  const known = new Set(found.flatMap(({ cycle, behind }) => [...cycle.map(({ task }) => task), ...behind]));
  return [...found, ...cyclesIn(waits, new Set([...more].filter((task) => !known.has(task))), true)];
}

/** The largest set of tasks each of whose waits only the set itself can end. */
function stuck<T>({ of, open }: Waits<T>, known: readonly Wait<T>['known'][]): Set<T> {
  const left = new Set([...of.keys()].filter((task) => !open.has(task)));
  const isStuck = (wait: Wait<T>): boolean => {
    if (!known.includes(wait.known) || wait.enders.length === 0) return false;
    const needed = neededOf(wait);
    return needed ? needed.some(({ task }) => left.has(task)) : wait.enders.every(({ task }) => left.has(task));
  };
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const task of left) if (!(of.get(task) ?? []).every(isStuck)) left.delete(task);
  }
  return left;
}

/** Each of these must act, or the wait does not end; undefined if none is sure to have to. */
function neededOf<T>({ needs, enders }: Wait<T>): readonly Ender<T>[] | undefined {
  const sure = enders.filter(({ maybe }) => !maybe);
  return needs === 'all' && sure.length > 0 ? sure : undefined;
}

function cyclesIn<T>({ of }: Waits<T>, set: ReadonlySet<T>, likely: boolean): Deadlock<T>[] {
  const next = (task: T): { wait: Wait<T>; to: T } | undefined => {
    for (const wait of of.get(task) ?? [])
      for (const { task: to } of neededOf(wait) ?? wait.enders) if (set.has(to)) return { wait, to };
    return undefined;
  };
  const found: { cycle: { task: T; wait: Wait<T> }[]; behind: T[] }[] = [];
  const cycleOf = new Map<T, (typeof found)[number]>();
  for (const start of set) {
    const path: { task: T; wait: Wait<T> }[] = [];
    let at: T | undefined = start;
    while (at !== undefined && !cycleOf.has(at) && !path.some(({ task }) => task === at)) {
      const step = next(at);
      if (step) path.push({ task: at, wait: step.wait });
      at = step?.to;
    }
    if (at === undefined) continue;
    let deadlock = cycleOf.get(at);
    if (deadlock === undefined) {
      const cycle = path.splice(path.findIndex(({ task }) => task === at));
      deadlock = { cycle, behind: [] };
      found.push(deadlock);
      for (const { task } of cycle) cycleOf.set(task, deadlock);
    }
    for (const { task } of path) {
      deadlock.behind.push(task);
      cycleOf.set(task, deadlock);
    }
  }
  return found.map((each) => ({ ...each, likely }));
}
