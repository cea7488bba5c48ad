import { hex } from './addr.js';

/**
 * Facts as `--json` has them: their names in snake case, addresses in hex, null for what is not known. `names`: these
 * alone, in this order. What is nested stays as it is.
 */
export function jsonFacts<T extends object>(facts: T, names = Object.keys(facts) as (keyof T & string)[]): object {
  const values = names.map((name): [string, unknown] => {
    const value: unknown = facts[name];
    return [snakeCase(name), typeof value === 'bigint' ? hex(value) : (value ?? null)];
  });
  return Object.fromEntries(values);
}

/** `ringWaitedNs` is `ring_waited_ns`. */
function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
