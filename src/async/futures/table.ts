import { hex } from '../../base/addr.js';
import { type ColumnsOptions, shownFile, textTable } from '../../text/index.js';
import { placeText } from '../../trace/index.js';
import { type FutureNames, shortType } from './short-names.js';
import { blameChain, blameOf } from './size-blame.js';
import { statesText } from './tree.js';
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

/** Below this width of a terminal a table has its first columns alone. */
const FEW_COLUMNS = 140;
const NARROW_COLUMNS = 6;

/** Futures inside one another that a line shows. */
const MAX_CHAIN = 6;

/**
 * The largest Future first. Each has the state that determines its size and the two largest members in that state.
 * Then the Futures inside the largest member, each in the one before. An argument that is kept next to its awaited
 * copy shows among the members.
 */
export function futuresSizes(futures: readonly FutureType[], names: FutureNames, options: ColumnsOptions): string {
  const sorted = [...futures].sort((a, b) => b.size - a.size);
  const rows = sorted.map((future) => {
    const blame = blameOf(future);
    if (blame === undefined) return [String(future.size), names.of(future), '', '', '', '', '', ''];
    const { state, member, next } = blame;
    return [
      String(future.size),
      names.of(future),
      String(member.size),
      future.size === 0 ? '' : `${Math.round((100 * member.size) / future.size)} %`,
      state === undefined ? '' : statesText([state]),
      `${member.name}: ${shortType(member.type)}`,
      next === undefined ? '' : `${next.name}: ${shortType(next.type)} ${next.size}`,
      chainText(future, names),
    ];
  });
  const columns = [
    'size>',
    'future~',
    'bytes>',
    'share>',
    'state~',
    'largest member~',
    'next largest~',
    'inside the largest~',
  ];
  const kept = (options.width ?? FEW_COLUMNS) < FEW_COLUMNS ? NARROW_COLUMNS : columns.length;
  return textTable(
    columns.slice(0, kept),
    rows.map((row) => row.slice(0, kept)),
    options,
  );
}

function chainText(future: FutureType, names: FutureNames): string {
  const [first, ...rest] = blameChain(future);
  if (first === undefined) return '';
  // If the member is that Future itself, its own column says so already.
  const chain = blameOf(future)?.member.size === first.size ? rest : [first, ...rest];
  const shown = chain.slice(0, MAX_CHAIN).map((inner) => `${names.short(inner)} ${inner.size}`);
  if (chain.length > MAX_CHAIN) shown.push('...');
  return shown.join(' > ');
}
