import { type FutureType, onlyHeld } from '../../../async/futures/index.js';

/**
 * What a Future without states of its own consists of, if that is one Future in its own bytes with the same output:
 * its result is that Future's, as a wrapper's that counts polls is. Undefined for any other: one that holds several, or
 * whose output is another one, as a timeout's is, may be ready when what it holds is not.
 */
export function handedOn(future: FutureType): { readonly future: FutureType; readonly offset: number } | undefined {
  const [held] = future.states.length > 0 ? [] : onlyHeld(future);
  return held && held.future.output !== undefined && held.future.output === future.output ? held : undefined;
}
