/*
 * tokio's handles lead to tasks:
 *
 *   JoinHandle { raw: RawTask { ptr: NonNull<Header> } }
 *   JoinSet { inner: IdleNotifiedSet { lists: Arc<Mutex<ListsInner { notified, idle, .. }>> } }, lists of
 *   ListEntry { pointers: { prev, next }, value: JoinHandle, .. }
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { type Die, genericsOf, littleEndian, typeName } from '../../../dwarf/index.js';
import { firstPointer, memberAt, numberAt, partCalled } from '../layout.js';
import type { Pointed } from '../references.js';
import type { Look, Primitive } from './resource.js';

/** No program waits for more at once; a damaged list must end. */
const MOST = 100_000;

const joinHandle: Primitive = {
  futures: ['tokio::runtime::task::join::JoinHandle'],
  async awaited(look, node) {
    const task = await look.number(look.self(node), 'raw.ptr');
    if (!task) return undefined;
    const enders = { how: 'itself', tasks: [addr(task)], needs: 'all' } as const;
    const closure = await closureOf(look, addr(task));
    if (closure === undefined) return { kind: 'task', address: undefined, enders };
    return { kind: 'closure', address: undefined, detail: closure, enders };
  },
};

const RUNTIME = 'tokio::runtime';
const BLOCKING = /^tokio::runtime::(?:blocking::task|task::blocking)::BlockingTask<(.*)>$/;

/**
 * What `spawn_blocking` was given, where a handle leads to that: by the function that its header's vtable polls with.
 */
async function closureOf(look: Look, task: Addr): Promise<string | undefined> {
  const { debug } = look.context;
  const [header] = debug.typesNamed(`${RUNTIME}::task::core::Header`);
  const [table] = debug.typesNamed(`${RUNTIME}::task::raw::Vtable`);
  const [vtable, entry] = [header && memberAt(header, 'vtable'), table && memberAt(table, 'poll')];
  const pointer = vtable && (await look.numberAt(addOffset(task, vtable.offset)));
  if (!pointer || !entry) return undefined;
  const at = addOffset(addr(pointer), entry.offset);
  const constant = debug.elf.bytesAt(at, 8);
  const poll = (await look.numberAt(at)) ?? (constant && littleEndian(constant));
  const die = poll === undefined ? undefined : debug.functionAt(addr(poll))?.die;
  const { T } = Object.fromEntries(die ? genericsOf(die) : []);
  return T && BLOCKING.exec(typeName(T))?.[1];
}

const SET = 'tokio::task::join_set::JoinSet';

const joinSet: Primitive = {
  futures: [`${SET}::join_next`, `${SET}::join_next_with_id`, `${SET}::join_all`],
  async awaited(look, node) {
    if (!(await look.selfOf(node))?.type) return undefined;
    const lists = await look.behind(node, 'self', 'inner.lists');
    const tasks = lists && (await tasksOf(look, lists));
    const enders = tasks && ({ how: 'itself', tasks, needs: 'any' } as const);
    return { kind: 'tasks', address: undefined, ...(enders ? { enders } : {}) };
  },
};

/** The tasks of both lists, by their headers. */
async function tasksOf(look: Look, { type, address }: Pointed): Promise<Addr[] | undefined> {
  const inner = type && partCalled(type, 'ListsInner');
  if (inner === undefined) return undefined;
  const found: Addr[] = [];
  for (const name of ['notified', 'idle']) {
    const head = look.part(inner.type, `${name}.head`);
    const entry = head && firstPointer(head.type)?.type;
    const first = head && (await look.numberAt(addOffset(address, inner.offset + head.offset)));
    if (!entry || first === undefined) return undefined;
    found.push(...(await handlesFrom(look, entry, first)));
  }
  return found;
}

async function handlesFrom(look: Look, entry: Die, head: bigint): Promise<Addr[]> {
  const links = partCalled(entry, 'PointersInner');
  const next = links && memberAt(links.type, 'next');
  const handle = partCalled(entry, 'JoinHandle');
  if (!links || !next || !handle) return [];
  const found: Addr[] = [];
  for (let at = head; at !== 0n && found.length < MOST; ) {
    const bytes = await look.context.memory.read(addr(at), Math.max(links.offset + links.size, handle.offset + 8));
    if (!bytes) break;
    found.push(addr(numberAt(bytes, { offset: handle.offset, size: 8 })));
    at = numberAt(bytes, { offset: links.offset + next.offset, size: 8 });
  }
  return found;
}

export const tokioJoins: readonly Primitive[] = [joinHandle, joinSet];
