// What a program in JavaScript gives, which no compiler has checked: a wrong option would do nothing, for ever.
import { RsptraceError } from '../base/errors.js';
import { nearestWords } from '../base/search.js';

/** What an option must be, in words and as a test. */
type Must = readonly [what: string, is: (value: unknown) => boolean];

/** One for each option. */
export type Musts<O> = { readonly [K in keyof Required<O>]: Must };

export const text: Must = ['a text', (value) => typeof value === 'string'];
export const flag: Must = ['true or false', (value) => typeof value === 'boolean'];
export const call: Must = ['a function', (value) => typeof value === 'function'];
export const list: Must = ['a list', Array.isArray];
export const texts: Must = ['a list of texts', (value) => Array.isArray(value) && value.every(text[1])];
export const count: Must = ['a whole number above 0', (value) => Number.isSafeInteger(value) && Number(value) > 0];
export const positive: Must = ['a number above 0', (value) => typeof value === 'number' && value > 0];
export const time: Must = ['a length of time', (value) => typeof value === 'string' || typeof value === 'number'];
export const object: Must = ['an object', (value) => typeof value === 'object' && value !== null];
export const address: Must = ['a bigint', (value) => typeof value === 'bigint'];
export const oneOf = (names: readonly string[]): Must => [
  `one of ${names.join(', ')}`,
  (value) => names.some((name) => name === value),
];
/** With these functions. */
export const having = (...names: readonly string[]): Must => [
  `an object with ${names.join(', ')}`,
  (value) => object[1](value) && names.every((name) => call[1](Reflect.get(value as object, name))),
];

/** Throws `USAGE`. `where`: whose options they are, such as `probe`. */
export function verifyGiven<O>(where: string, options: O, musts: Musts<O>): void {
  verifyOne(`the options of ${where}`, options, object);
  const names = Object.keys(musts);
  for (const [name, value] of Object.entries(options as object)) {
    if (!names.includes(name)) {
      const near = nearestWords(name, names);
      throw wrong(`${where} has no option ${name}`, `nearest: ${(near.length > 0 ? near : names).join(', ')}`);
    }
    if (value !== undefined) verifyOne(`${name} of ${where}`, value, musts[name as keyof O]);
  }
}

/** Throws `USAGE`. */
export function verifyOne(name: string, value: unknown, [what, is]: Must): void {
  if (!is(value)) throw wrong(`${name}: this is not ${what}`);
}

function wrong(message: string, hint = 'docs/api.md has what there is'): RsptraceError {
  return new RsptraceError('USAGE', message, { hint });
}
