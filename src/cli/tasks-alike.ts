// Tasks that differ in nothing but which they are: one is shown, and the others are named below it.
import { BLOCK_ON, type Task, taskName } from '../async/tasks/index.js';
import { hex } from '../base/addr.js';
import { wrapped } from '../text/index.js';

/** More tasks of a line are only counted. */
const MOST_NAMED = 20;

/** What is shown of a task, and the others of which the same would be. */
export interface Alike<T> {
  readonly shown: T;
  readonly first: Task;
  readonly others: Task[];
}

/**
 * In the order of the first of each. `keyOf`: what is equal in those that are alike; undefined for one apart. What a
 * thread blocks on has no number, and stands apart.
 */
export function alike<T extends { readonly task: Task }>(
  all: readonly T[],
  keyOf: (each: T) => string | undefined,
): Alike<T>[] {
  const groups: Alike<T>[] = [];
  const known = new Map<string, Alike<T>>();
  for (const each of all) {
    const { task } = each;
    const key = task.runtime === BLOCK_ON ? undefined : keyOf(each);
    const group = key === undefined ? undefined : known.get(key);
    const isNamed = task === (group?.others.at(-1) ?? group?.first);
    if (group) group.others.push(...(isNamed ? [] : [task]));
    else {
      const made = { shown: each, first: task, others: [] };
      groups.push(made);
      if (key !== undefined) known.set(key, made);
    }
  }
  return groups;
}

/** `and 3 more like it: tasks 9, 10, 12`. */
export function othersLines({ others }: Pick<Alike<unknown>, 'others'>, width: number): string[] {
  if (others.length === 0) return [];
  return wrapped(`  and ${others.length} more like it: ${numbersOf(others)}`, width, '    ');
}

/** `3 tasks (shop::serve_one, src/main.rs:28)`, or the one; `wait` says for what. */
export function waitersText(
  { first, others }: Omit<Alike<unknown>, 'shown'>,
  place: string | undefined,
  wait: string,
): string {
  const name = taskName(first, place);
  if (others.length === 0) return `${name} ${wait}`;
  const [, what = ''] = / (\(.*\))$/.exec(name) ?? [];
  return `${others.length + 1} tasks ${what}, each ${wait}: ${numbersOf([first, ...others])}`;
}

function numbersOf(tasks: readonly Task[]): string {
  const names = tasks.slice(0, MOST_NAMED).map(({ facts, address }) => facts.id ?? hex(address));
  const more = tasks.length - names.length;
  return `tasks ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
