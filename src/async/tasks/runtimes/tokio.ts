/*
 * tokio: a task is a `Cell<T, S>` on the heap, T its Future and S its scheduler. Its header points to a vtable, a
 * constant of the program, which begins with `tokio::runtime::task::raw::poll::<T, S>`:
 *
 *   Cell   header: Header { state, vtable, owner_id, .. }
 *          core:   Core { scheduler: S, task_id, stage: Running(T) | Finished | Consumed, [spawned_at] }
 *
 * The poll functions are in the debug info, with T and S. So the vtables are found in the program's data, and the
 * headers in memory by the vtables' addresses. Offsets are those of the program's own types.
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import {
  type Die,
  genericsOf,
  layoutOf,
  selectVariant,
  stripGenerics,
  typeName,
  variantName,
} from '../../../dwarf/index.js';
import type { KnownTask, TaskPoller } from '../../futures/index.js';
import { memberAt, numberAt, type Part, partCalled } from '../layout.js';
import { type FoundRoot, isIn, type Runtime, type TaskContext, type TaskFacts } from '../runtime.js';
import { functionsOf, isCounted, type TaskFunction, tasksByVtable, vtablesOf } from './constants.js';
import { runningOffset } from './header-tasks.js';

/** Bits of `Header::state`; above them is the number of references. tokio/src/runtime/task/state.rs */
const STATE = { RUNNING: 1n, COMPLETE: 2n, NOTIFIED: 4n, JOIN_INTEREST: 8n, CANCELLED: 32n } as const;
const REFERENCES = 6n;
/** tokio numbers tasks and runtimes from 1. */
const MOST_NUMBER = 1n << 48n;
/** Places where tasks are made that are kept. */
const MOST_PLACES = 100_000;

const TASK = 'tokio::runtime::task';
const POLL = `${TASK}::raw::poll`;

/** How the cells of one `Cell<T, S>` lie in memory. */
interface CellLayout {
  readonly name: string;
  readonly future: Die;
  readonly scheduler: string;
  readonly size: number;
  readonly align: number;
  readonly header: number;
  readonly state: Part;
  readonly vtable: Part;
  readonly stage: Part;
  /** What lies around the stage. */
  readonly holders: readonly Part[];
  readonly owner: Part | undefined;
  readonly id: Part | undefined;
  readonly spawnedAt: Part | undefined;
}

interface CellPoll extends TaskFunction {
  readonly layout: CellLayout;
}

export const tokio: Runtime = {
  name: 'tokio',
  wakers: /^tokio::runtime::/,
  // `CoreStage` in 1.20.
  polls: /^tokio::runtime::task::core::(?:Core|CoreStage)::poll(?:::|$)/,
  async roots(context) {
    if (functionsOf(context, POLL).length === 0) return undefined;
    const byPoll = new Map(tokioPolls(context).map(({ address, layout }) => [address as bigint, layout]));
    const full = { ...context, located: locationsIn(context) };
    return tasksByVtable(context, vtablesOf(context.debug.elf, byPoll, vtableEntry(context)), (layout, pointer) =>
      taskAt(full, layout, addOffset(pointer, -layout.vtable.offset)),
    );
  },
};

/** The functions by which its schedulers poll tasks, and what the tasks of each look like. */
export function tokioPolls(context: Pick<TaskContext, 'debug' | 'note'>, layouts = cellLayouts(context)): CellPoll[] {
  return functionsOf(context, POLL).flatMap(({ die, address }) => {
    const { T, S } = Object.fromEntries(genericsOf(die));
    const layout = T && S && layouts.get(`${typeName(T)}, ${typeName(S)}`);
    if (layout) return [{ die, address, layout }];
    if (T) context.note(`tokio: the cell of \`${typeName(T)}\` is not in the debug info: its tasks are missing`);
    return [];
  });
}

/** Those of them where a task's id can be read. */
export function tokioPollers(context: Pick<TaskContext, 'debug'>, polls: readonly CellPoll[]): TaskPoller[] {
  const located = locationsIn(context);
  return polls.flatMap(({ die, layout }) => {
    const { header, id, spawnedAt } = layout;
    if (!id) return [];
    const words = [id, ...(spawnedAt ? [spawnedAt] : [])].map(({ offset }) => offset - header);
    const taskOf = ([number = 0n, place = 0n]: readonly bigint[]): KnownTask => {
      const spawned = located(place);
      return { runtime: 'tokio', id: Number(number), spawned };
    };
    return [{ die, name: POLL, header, words, taskOf }];
  });
}

function vtableEntry({ debug, note }: TaskContext): number {
  const [vtable] = debug.typesNamed(`${TASK}::raw::Vtable`);
  return (vtable && memberAt(vtable, 'poll', (what) => note(`tokio: ${what}`))?.offset) ?? 0;
}

export function cellLayouts(context: Pick<TaskContext, 'debug' | 'note'>): Map<string, CellLayout> {
  const found = new Map<string, CellLayout>();
  for (const cell of context.debug.typesNamed(`${TASK}::core::Cell`)) {
    const { T, S } = Object.fromEntries(genericsOf(cell));
    if (!T || !S) continue;
    const layout = context.debug.attempt(cell.unit, () => cellLayout(context, cell, T, S));
    if (layout) found.set(layout.name, layout);
  }
  return found;
}

function cellLayout(
  { note }: Pick<TaskContext, 'note'>,
  cell: Die,
  future: Die,
  scheduler: Die,
): CellLayout | undefined {
  const without = (what: string): void => note(`tokio: ${what}, so its tasks cannot be listed`);
  const less = (what: string): void => note(`tokio: ${what}`);
  const state = memberAt(cell, 'header.state', without);
  const header = memberAt(cell, 'header', without);
  const vtable = memberAt(cell, 'header.vtable', without);
  const core = memberAt(cell, 'core.stage', without);
  if (!header || !state || !vtable || !core) return undefined;
  const stage = partCalled(core.type, 'Stage');
  if (stage === undefined) return undefined;
  const { size, align = 8 } = layoutOf(cell);
  return {
    name: `${typeName(future)}, ${typeName(scheduler)}`,
    ...{ future, scheduler: schedulerName(scheduler), size, align, header: header.offset, state, vtable },
    stage: { ...stage, offset: core.offset + stage.offset },
    holders: [{ type: cell, offset: 0, size }, core],
    owner: memberAt(cell, 'header.owner_id', less),
    id: memberAt(cell, 'core.task_id', less),
    // Only with `--cfg tokio_unstable`.
    spawnedAt: memberAt(cell, 'core.spawned_at'),
  };
}

/** `multi_thread` for `Arc<tokio::runtime::scheduler::multi_thread::handle::Handle>`, `LocalSet`, `blocking`. */
function schedulerName(scheduler: Die): string {
  const name = typeName(scheduler);
  if (name.includes('tokio::task::local::')) return 'LocalSet';
  const [, kind] = /tokio::runtime::(?:scheduler::)?(\w+)::/.exec(name) ?? [];
  return kind ?? stripGenerics(name);
}

async function taskAt(
  context: TaskContext & { readonly located: Locations },
  layout: CellLayout,
  cell: Addr,
): Promise<FoundRoot | undefined> {
  // A cell is put together on a stack, and moved to the heap.
  if (cell % BigInt(layout.align) !== 0n || isIn(context.stacks, cell)) return undefined;
  const bytes = await context.memory.read(cell, layout.size);
  if (bytes === undefined) return undefined;
  const state = numberAt(bytes, layout.state);
  const numbers = [layout.id, layout.owner].map((part) => part && numberAt(bytes, part));
  if (!isCounted(state >> REFERENCES)) return undefined;
  const [id, owner] = numbers;
  if (id === 0n || numbers.some((number) => number !== undefined && number > MOST_NUMBER)) return undefined;
  const spawned = layout.spawnedAt && context.located(numberAt(bytes, { ...layout.spawnedAt, size: 8 }));
  const facts: TaskFacts = {
    ...(id === undefined ? {} : { id: Number(id) }),
    state: stateText(state),
    scheduler: layout.scheduler,
    ...(owner === undefined || owner === 0n ? {} : { owner: Number(owner) }),
    ...(spawned === undefined ? {} : { spawned }),
  };
  const place = runningPlace(layout.stage, bytes);
  const isOver = place === undefined || (state & STATE.COMPLETE) !== 0n;
  const fate = isOver ? 'ended' : layout.scheduler === 'blocking' ? 'internal' : 'live';
  const future = context.futures.ofType(layout.future);
  const address = addOffset(cell, place ?? layout.stage.offset);
  const root = { future, typeName: typeName(layout.future), address, references: [cell] };
  const header = addOffset(cell, layout.header);
  return { ...root, header, fate, facts, ...(fate === 'live' ? { wakeable: isWakeable(state) } : {}) };
}

/** Where the Future lies in its cell; undefined if the stage is another one. */
function runningPlace(stage: Part, bytes: Uint8Array): number | undefined {
  const { variantPart } = layoutOf(stage.type);
  const { offset = 0, size = 0 } = variantPart?.discriminant ?? {};
  const value = numberAt(bytes, { offset: stage.offset + offset, size });
  const variant = variantPart && selectVariant(variantPart.variants, value);
  return variant && variantName(variant) === 'Running' ? runningOffset(stage) : undefined;
}

/** It runs, is queued, or somebody besides its runtime and its handle refers to it. */
function isWakeable(state: bigint): boolean {
  if ((state & (STATE.RUNNING | STATE.NOTIFIED)) !== 0n) return true;
  const handle = (state & STATE.JOIN_INTEREST) === 0n ? 0n : 1n;
  return state >> REFERENCES > 1n + handle;
}

function stateText(state: bigint): string {
  const has = (bit: bigint): boolean => (state & bit) !== 0n;
  const words = [has(STATE.COMPLETE) ? 'complete' : has(STATE.RUNNING) ? 'running' : 'idle'];
  if (has(STATE.NOTIFIED)) words.push('notified');
  if (has(STATE.CANCELLED)) words.push('cancelled');
  if (has(STATE.JOIN_INTEREST)) words.push('join interest');
  return words.join(', ');
}

/** `src/main.rs:12:5` of a `core::panic::Location`, a constant of the program. */
type Locations = (at: bigint) => string | undefined;

/** Each is read once: a server makes its tasks at a few places. */
function locationsIn({ debug }: Pick<TaskContext, 'debug'>): Locations {
  const [type] = debug.typesNamed('core::panic::location::Location');
  // The file's name is `file` before Rust 1.91.
  const file = type && (memberAt(type, 'filename') ?? memberAt(type, 'file'));
  const [line, column] = [type && memberAt(type, 'line'), type && memberAt(type, 'col')];
  if (!type || !file || !line || !column) return () => undefined;
  const { size } = layoutOf(type);
  const known = new Map<bigint, string | undefined>();
  const read = (at: bigint): string | undefined => {
    const bytes = at === 0n ? undefined : debug.elf.bytesAt(addr(at), size);
    if (!bytes) return undefined;
    const length = Number(numberAt(bytes, { offset: file.offset + 8, size: 8 }));
    const name = addr(numberAt(bytes, { offset: file.offset, size: 8 }));
    const text = length < 4096 ? debug.elf.bytesAt(name, length) : undefined;
    return text && `${new TextDecoder().decode(text)}:${numberAt(bytes, line)}:${numberAt(bytes, column)}`;
  };
  return (at) => {
    if (!known.has(at) && known.size < MOST_PLACES) known.set(at, read(at));
    return known.get(at);
  };
}
