import { hex } from '../base/addr.js';
import { textTable } from '../base/columns.js';
import { shownFile } from '../base/shown-place.js';
import { placeText } from '../trace/index.js';
import type { FutureNames } from './short-names.js';
import type { FutureType } from './types.js';

/**
 * One line per Future: name, size, how many states and awaits it has, its poll function. `seen` says how its polls are
 * seen.
 */
export function futuresTable(
  futures: readonly FutureType[],
  names: FutureNames,
  seen: (future: FutureType) => string,
  color: boolean,
): string {
  const rows = futures.map((future) => [
    names.of(future),
    future.kind,
    String(future.size),
    future.kind === 'impl' ? '-' : String(future.states.length),
    future.kind === 'impl' ? '-' : String(future.states.filter((state) => state.awaitee !== undefined).length),
    pollText(future),
    seen(future),
    shownFile(placeText(future) ?? ''),
  ]);
  const columns = ['future', 'kind', 'size>', 'states>', 'awaits>', 'poll', 'seen', 'file:line'];
  return textTable(columns, rows, color);
}

/** The address of its poll function; `inlined (3)` with the number of copies if it has none of its own. */
export function pollText({ polls, inlined }: Pick<FutureType, 'polls' | 'inlined'>): string {
  const [first, ...more] = polls;
  if (first !== undefined) return `${hex(first.address)}${more.length > 0 ? ` +${more.length}` : ''}`;
  return inlined.length > 0 ? `inlined (${inlined.length})` : 'none';
}
