import { visible } from '../../base/visible.js';
import type { FunctionRef, FutureRef } from '../events/events.js';
import { PiecesOf } from './output/text-bytes.js';

const names = new PiecesOf<FunctionRef | FutureRef>((what) =>
  visible('future' in what ? `poll ${what.future}` : what.name),
);

/** What a text calls a function, or the poll of a Future. */
export function callName(event: { readonly function: FunctionRef } | { readonly future: FutureRef }): Uint8Array {
  return names.of('function' in event ? event.function : event.future);
}
