/*
 * The crate async-task, which smol, async-executor and most kernels of one's own stand on. A task is one allocation
 * whose layout no type describes; a constant of the program does, for debuggers:
 *
 *   Header<M> { state, awaiter, vtable, metadata }   then the schedule function S, then the Future F or its result
 *   TaskVTable { .., run: RawTask::<F, T, S, M>::run, layout_info: &TaskLayout { offset_s, offset_f, offset_r, .. } }
 *
 * The functions `run` are in the debug info, with F and M. So the vtables are found in the program's data, and the
 * headers in memory by the vtables' addresses, on whatever heap.
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { type DebugInfo, type Die, genericsOf, layoutOf, sizeOf, typeName } from '../../../dwarf/index.js';
import { memberAt, numberAt, type Part } from '../layout.js';
import { type FoundRoot, isIn, type Runtime, type TaskContext } from '../runtime.js';
import type { Snapshot } from '../snapshot.js';
import { closableState, functionsOf, isCounted, tasksByVtable, typesOf, vtablesOf } from './constants.js';

/** Bits of `Header::state` (async-task/src/state.rs). `HANDLE` is `TASK`; above them is the number of references. */
const STATE = { SCHEDULED: 1n, RUNNING: 2n, COMPLETED: 4n, CLOSED: 8n, HANDLE: 16n, AWAITER: 32n } as const;
const REFERENCES = 8n;
/** smol's global executor has a task for child processes. */
const OWN = /^(?:async_executor::AsyncCallOnDrop<)?async_process::/;

/** The parts of a header, and of the program's constants, by its own types. */
interface Layout {
  readonly size: number;
  readonly align: number;
  readonly state: Part;
  readonly vtable: Part;
}

/** What constants are read from: the ELF, and memory where that has them not. */
interface ReadableContext {
  readonly debug: DebugInfo;
  readonly memory: Pick<Snapshot, 'read'>;
}

interface VTableLayout {
  readonly run: Part;
  readonly info: Part;
  readonly infoSize: number;
  readonly future: Part;
}

const RUN = 'async_task::raw::RawTask::run';

export const asyncTask: Runtime = {
  name: 'async-task',
  wakers: /\basync_task::raw::/,
  polls: /^async_task::raw::RawTask::run(?:::|$)/,
  async roots(context) {
    if (functionsOf(context, RUN).length === 0) return undefined;
    const vtables = new Map((await asyncTasks(context)).map((kind) => [kind.vtable as bigint, kind]));
    return tasksByVtable(context, vtables, (kind, pointer) =>
      taskAt(context, kind, addOffset(pointer, -kind.header.vtable.offset)),
    );
  },
};

function vtableLayout({ debug, note }: Pick<TaskContext, 'debug' | 'note'>): VTableLayout | undefined {
  const without = (what: string): void => note(`async-task: ${what}, so its tasks cannot be listed`);
  const [vtable] = debug.typesNamed('async_task::raw::TaskVTable');
  const [layout] = debug.typesNamed('async_task::raw::TaskLayout');
  if (!vtable || !layout) {
    without('`async_task::raw::TaskVTable` or `TaskLayout` is not in the debug info');
    return undefined;
  }
  const run = memberAt(vtable, 'run', without);
  const info = memberAt(vtable, 'layout_info', without);
  const future = memberAt(layout, 'offset_f', without);
  return run && info && future && { run, info, infoSize: sizeOf(layout) ?? 0, future };
}

function headerLayouts({ debug, note }: Pick<TaskContext, 'debug' | 'note'>): Map<string, Layout> {
  const without = (what: string): void => note(`async-task: ${what}, so its tasks cannot be listed`);
  const found = new Map<string, Layout>();
  for (const header of debug.typesNamed('async_task::header::Header')) {
    const metadata = genericsOf(header).get('M');
    const state = memberAt(header, 'state', without);
    const vtable = memberAt(header, 'vtable', without);
    const { size, align = 8 } = layoutOf(header);
    if (metadata && state && vtable) found.set(typeName(metadata), { size, align, state, vtable });
  }
  return found;
}

/** Where the Future lies in a task, as the vtable's own layout says. */
async function futureOffset(context: ReadableContext, table: VTableLayout, vtable: Addr): Promise<number | undefined> {
  const { elf } = context.debug;
  const read = async (at: Addr, size: number): Promise<Uint8Array | undefined> =>
    elf.bytesAt(at, size) ?? (await context.memory.read(at, size));
  const pointer = await read(addOffset(vtable, table.info.offset), 8);
  const info = pointer && (await read(addr(numberAt(pointer, { offset: 0, size: 8 })), table.infoSize));
  const offset = info && Number(numberAt(info, table.future));
  return offset !== undefined && offset < 1 << 24 ? offset : undefined;
}

/** A task that was closed, by the state in its header: its Future is dropped when it runs. */
export const closed = STATE.CLOSED;

/** A kind of task that the program can spawn. */
interface SpawnedKind {
  readonly type: Die;
  readonly header: Layout;
  /** Of the Future, from the header. */
  readonly offset: number;
  /** The function `run`. */
  readonly die: Die;
  readonly vtable: Addr;
}

/** The kinds of tasks that the program's constants show. */
export async function asyncTasks(context: Pick<TaskContext, 'note'> & ReadableContext): Promise<SpawnedKind[]> {
  const runs = functionsOf(context, RUN);
  const table = runs.length > 0 ? vtableLayout(context) : undefined;
  if (!table) return [];
  const headers = headerLayouts(context);
  const kinds = new Map<bigint, Pick<SpawnedKind, 'type' | 'header' | 'die'>>();
  for (const { die, address } of runs) {
    const { F: type, M } = Object.fromEntries(genericsOf(die));
    const header = M && headers.get(typeName(M));
    if (type && header) kinds.set(address, { type, header, die });
    else context.note('async-task: a `RawTask::run` without its types in the debug info: its tasks are missing');
  }
  const found: SpawnedKind[] = [];
  for (const [vtable, kind] of vtablesOf(context.debug.elf, kinds, table.run.offset)) {
    const offset = await futureOffset(context, table, addr(vtable));
    if (offset !== undefined) found.push({ ...kind, offset, vtable: addr(vtable) });
  }
  return found;
}

/** The function `drop_future` of the tasks that a `run` is for, if it has code of its own. */
export function dropperOf(context: Pick<TaskContext, 'debug'>, run: Die): Die | undefined {
  const wanted = typesOf(run);
  return functionsOf(context, 'async_task::raw::RawTask::drop_future').find(({ die }) => typesOf(die) === wanted)?.die;
}

async function taskAt(
  context: TaskContext,
  { type, header, offset }: SpawnedKind,
  at: Addr,
): Promise<FoundRoot | undefined> {
  if (at % BigInt(header.align) !== 0n || isIn(context.stacks, at)) return undefined;
  const bytes = await context.memory.read(at, header.size);
  if (bytes === undefined) return undefined;
  const state = numberAt(bytes, header.state);
  const has = (bit: bigint): boolean => (state & bit) !== 0n;
  const references = state >> REFERENCES;
  // A handle is a reference that is not counted.
  if (!isCounted(references + (has(STATE.HANDLE) ? 1n : 0n))) return undefined;
  const { isOver, words } = closableState(state, STATE);
  if (has(STATE.AWAITER)) words.push('awaited');
  const name = typeName(type);
  return {
    future: context.futures.ofType(type),
    typeName: name,
    address: addOffset(at, offset),
    references: [at],
    header: at,
    // An executor of async-executor keeps a waker of each task itself, to drop the tasks that are left.
    wakeable: has(STATE.RUNNING) || has(STATE.SCHEDULED) || references > (name.includes('async_executor::') ? 1n : 0n),
    fate: isOver ? 'ended' : OWN.test(name) ? 'internal' : 'live',
    facts: { state: words.join(', ') },
  };
}
