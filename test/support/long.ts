import type { Test } from 'tap';

/** True under `scripts/test --long`: what is sampled otherwise is tested whole, and repetitions are many more. */
export const long = process.env.RSPTRACE_LONG === '1';

/** All of a matrix under `--long`, else those that are `chosen`: each of them proves something that no other does. */
export function usually<T>(all: readonly T[], chosen: (one: T) => boolean): readonly T[] {
  return long ? all : all.filter(chosen);
}

/** That many random cases under `--long`, else the first quarter of them: the seed is fixed. fast-check's runs are as many by themselves. */
export function cases(all: number): number {
  return long ? all : Math.ceil(all / 4);
}

/** A test of a variant: others prove its rule, so that it runs under `--long` alone. */
export function variant(t: Pick<Test, 'test'>, name: string, body: (t: Test) => void | Promise<void>): void {
  if (long) void t.test(name, body);
}
