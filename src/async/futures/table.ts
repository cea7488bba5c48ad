import { hex } from '../../base/addr.js';
import { type ColumnsOptions, shownFile, textTable } from '../../text/index.js';
import { placeText } from '../../trace/index.js';
import type { FutureNames } from './short-names.js';
import type { FutureType } from './types.js';

/** Below this width of a terminal a table has no kinds and no poll functions, so that names keep some room. */
const NARROW = 110;

/**
 * One line per Future: name, size, how many states and awaits it has, its poll function. `seen` says how its polls are
 * seen.
 */
export function futuresTable(
  futures: readonly FutureType[],
  names: FutureNames,
  seen: (future: FutureType) => string,
  options: ColumnsOptions,
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
  const columns = ['future~', 'kind', 'size>', 'states>', 'awaits>', 'poll', 'seen', 'file:line/'];
  const isNarrow = (options.width ?? NARROW) < NARROW;
  const kept = (_: string, index: number): boolean => !isNarrow || !['kind', 'poll'].includes(columns[index] ?? '');
  return textTable(
    columns.filter(kept),
    rows.map((row) => row.filter(kept)),
    options,
  );
}

/** The address of its poll function; `inlined (3)` with the number of copies if it has none of its own. */
function pollText({ polls, inlined }: Pick<FutureType, 'polls' | 'inlined'>): string {
  const [first, ...more] = polls;
  if (first !== undefined) return `${hex(first.address)}${more.length > 0 ? ` +${more.length}` : ''}`;
  return inlined.length > 0 ? `inlined (${inlined.length})` : 'none';
}
