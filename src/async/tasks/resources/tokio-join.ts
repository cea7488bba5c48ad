/*
 * tokio's handles lead to tasks:
 *
 *   JoinHandle { raw: RawTask { ptr: NonNull<Header> } }
 *   JoinSet { inner: IdleNotifiedSet { lists: Arc<Mutex<ListsInner { notified, idle, .. }>> } }, lists of
 *   ListEntry { pointers: { prev, next }, value: JoinHandle, .. }
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { type Die, genericsOf, typeName } from '../../../dwarf/index.js';
import { firstPointer, memberAt, numberAt, partCalled } from '../layout.js';
import type { Pointed } from '../references.js';
import type { Look, Primitive } from './resource.js';

/** No program waits for more at once; a damaged list must end. */
const MOST = 100_000;

export const tokioJoin: Primitive = {
  futures: ['tokio::runtime::task::join::JoinHandle'],
  async awaited(look, node) {
    const task = await look.number({ type: look.typeOf(node), address: node.address }, 'raw.ptr');
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
  const { debug, memory } = look.context;
  const [header] = debug.typesNamed(`${RUNTIME}::task::core::Header`);
  const [table] = debug.typesNamed(`${RUNTIME}::task::raw::Vtable`);
  const [vtable, entry] = [header && memberAt(header, 'vtable'), table && memberAt(table, 'poll')];
  const pointer = vtable && (await memory.read(addOffset(task, vtable.offset), 8));
  if (!pointer || !entry) return undefined;
  const at = addOffset(addr(numberAt(pointer, { offset: 0, size: 8 })), entry.offset);
  const poll = (await memory.read(at, 8)) ?? debug.elf.bytesAt(at, 8);
  const die = poll && debug.functionAt(addr(numberAt(poll, { offset: 0, size: 8 })))?.die;
  const { T } = Object.fromEntries(die ? genericsOf(die) : []);
  return T && BLOCKING.exec(typeName(T))?.[1];
}

const SET = 'tokio::task::join_set::JoinSet';

export const tokioJoinSet: Primitive = {
  futures: [`${SET}::join_next`, `${SET}::join_next_with_id`, `${SET}::join_all`],
  async awaited(look, node) {
    const set = await look.selfOf(node);
    if (!set?.type) return undefined;
    const lists = look.part(set.type, 'inner.lists') && (await look.pointerIn(set.type, set.address, 'inner.lists'));
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
    const bytes = head && (await look.context.memory.read(addOffset(address, inner.offset + head.offset), 8));
    if (!entry || !bytes) return undefined;
    found.push(...(await handlesFrom(look, entry, numberAt(bytes, { offset: 0, size: 8 }))));
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
