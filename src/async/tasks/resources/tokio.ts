/*
 * tokio's channels. Whoever has a sender can send:
 *
 *   mpsc      Receiver { chan: Rx { inner: Arc<Chan { tx_count, .. }> } }      Sender { chan: Tx { inner: Arc<Chan> } }
 *   broadcast Recv { receiver: &mut Receiver { shared: Arc<Shared { num_tx, .. }> } }   Sender { shared: Arc<Shared> }
 *   oneshot   Receiver { inner: Option<Arc<Inner>> }                          Sender { inner: Option<Arc<Inner>> }
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { littleEndian } from '../../../base/little-endian.js';
import { type Die, genericsOf, typeName } from '../../../dwarf/index.js';
import { plural } from '../../../text/index.js';
import type { AwaitNode } from '../await-tree.js';
import { firstPointer, memberAt, numberAt, partCalled } from '../layout.js';
import type { Pointed } from '../references.js';
import {
  type Awaited,
  channel,
  deadlineIn,
  type Look,
  nameOfType,
  type Primitive,
  reachable,
  timer,
} from './resource.js';

const SYNC = 'tokio::sync';

const mpscOf = (module: string, prefix: string): Primitive =>
  channel({
    kind: 'message',
    futures: ['recv', 'recv_many'].map((name) => `${SYNC}::mpsc::${module}::${prefix}Receiver::${name}`),
    owners: [`${SYNC}::mpsc::${module}::${prefix}Sender`],
    shared: (look, node) => look.behind(node, 'self', 'chan'),
    count: 'tx_count',
  });

const channels: readonly Primitive[] = [
  mpscOf('bounded', ''),
  mpscOf('unbounded', 'Unbounded'),
  channel({
    kind: 'message',
    futures: [`${SYNC}::broadcast::Recv`],
    owners: [`${SYNC}::broadcast::Sender`],
    shared: (look, node) => look.behind(node, 'receiver', 'shared'),
    count: 'num_tx',
  }),
  channel({
    kind: 'oneshot',
    futures: [`${SYNC}::oneshot::Receiver`],
    owners: [`${SYNC}::oneshot::Sender`],
    shared: (look, node) => look.behind(node, 'inner'),
    // `VALUE_SENT`, which a sender sets when it sends, and when it is dropped. tokio/src/sync/oneshot.rs
    ...{ count: 'state', goneBits: 2n },
  }),
];

/*
 * What of tokio ends by the clock, or by anybody who has a pointer to it:
 *
 *   Barrier { state: Mutex<BarrierState { arrived, .. }>, n, wait: watch::Receiver }
 *   Sleep { deadline: Instant { std: Timespec { tv_sec, tv_nsec } }, .. }, before in its TimerEntry `entry`
 *   Notified { notify: &Notify, .. }
 */

const BARRIER = 'tokio::sync::barrier::Barrier';
const NOTIFY = 'tokio::sync::notify::Notify';
const watches = 'tokio::sync::watch::Receiver';
const WATCH_SENDERS = ['tokio::sync::watch::Sender'];

const notified: Primitive = {
  futures: ['tokio::sync::notify::Notified', 'tokio::sync::notify::OwnedNotified'],
  owners: [`&${NOTIFY}`, `&${BARRIER}`, ...WATCH_SENDERS],
  async awaited(look, node, above) {
    const notify = await look.behind(node, 'notify');
    if (!notify) return undefined;
    const barrier = above.find(({ future }) => future?.future.startsWith(`${BARRIER}::`));
    if (barrier) return barrierOf(look, barrier);
    const key = addr(notify.address);
    const watch = above.find(({ future }) => future?.future.startsWith(watches));
    if (!watch) return { kind: 'Notify', address: key, enders: reachable(NOTIFY, key) };
    const senders = await watchSenders(look, watch);
    const counted = senders === undefined ? {} : { counted: { of: 'sender', count: Number(senders) } as const };
    const enders = { how: 'to be sent by', owners: WATCH_SENDERS, key, needs: 'any', count: 'anybody' } as const;
    return { kind: 'watch', address: key, enders: { ...enders, ...counted } };
  },
};

/** How many senders a watch has. tokio counts them since 1.37. */
async function watchSenders(look: Look, node: AwaitNode): Promise<bigint | undefined> {
  const shared = await look.behind(node, 'self', 'shared');
  const isCounted = shared?.type && memberAt(shared.type, 'ref_count_tx') !== undefined;
  return isCounted ? look.number(shared, 'ref_count_tx') : undefined;
}

/** Its end comes with others: whoever has it may be one of them. */
async function barrierOf(look: Look, node: AwaitNode): Promise<Awaited | undefined> {
  const barrier = await look.selfOf(node);
  if (!barrier?.type) return undefined;
  const { address } = barrier;
  const mutex = look.member(barrier, 'state');
  const state = mutex && look.within(mutex, 'BarrierState');
  const [arrived, all] = [state && (await look.number(state, 'arrived')), await look.number(barrier, 'n')];
  const detail = arrived === undefined || all === undefined ? {} : { detail: `${arrived} of ${all} have come` };
  return { kind: 'Barrier', address, ...detail, enders: reachable(BARRIER, address) };
}

/*
 * tokio's handles lead to tasks:
 *
 *   JoinHandle { raw: RawTask { ptr: NonNull<Header> } }
 *   JoinSet { inner: IdleNotifiedSet { lists: Arc<Mutex<ListsInner { notified, idle, .. }>> } }, lists of
 *   ListEntry { pointers: { prev, next }, value: JoinHandle, .. }
 */

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
async function tasksOf(look: Look, lists: Pointed): Promise<Addr[] | undefined> {
  const inner = look.within(lists, 'ListsInner');
  if (inner === undefined) return undefined;
  const found: Addr[] = [];
  for (const name of ['notified', 'idle']) {
    const head = look.member(inner, `${name}.head`);
    const entry = head && firstPointer(head.type)?.type;
    const first = head && (await look.numberAt(head.address));
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

/*
 * tokio's locks all wait in one place, `batch_semaphore::Acquire`: of a Mutex, a RwLock, a Semaphore, a OnceCell, or of
 * a channel with no room left. Which one, the Future above says by its `self`. Who has the permits has a guard:
 *
 *   Acquire { node: Waiter { state, .. }, semaphore: &batch_semaphore::Semaphore { permits, .. }, num_permits, queued }
 *   MutexGuard { lock: &Mutex { s: batch_semaphore::Semaphore } }      SemaphorePermit { sem: &Semaphore { ll_sem } }
 */

/** Below the number of permits a bit says that the semaphore is closed. tokio/src/sync/batch_semaphore.rs */
const PERMIT_SHIFT = 1n;

const GUARDS: readonly string[] = [
  ...['MutexGuard', 'OwnedMutexGuard', 'MappedMutexGuard', 'OwnedMappedMutexGuard'].map(
    (name) => `${SYNC}::mutex::${name}`,
  ),
  `${SYNC}::rwlock::read_guard::RwLockReadGuard`,
  `${SYNC}::rwlock::write_guard::RwLockWriteGuard`,
  `${SYNC}::rwlock::write_guard_mapped::RwLockMappedWriteGuard`,
  `${SYNC}::rwlock::owned_read_guard::OwnedRwLockReadGuard`,
  `${SYNC}::rwlock::owned_write_guard::OwnedRwLockWriteGuard`,
  `${SYNC}::rwlock::owned_write_guard_mapped::OwnedRwLockMappedWriteGuard`,
];
const PERMITS: readonly string[] = [`${SYNC}::semaphore::SemaphorePermit`, `${SYNC}::semaphore::OwnedSemaphorePermit`];
const RECEIVER = `${SYNC}::mpsc::bounded::Receiver`;

const semaphore: Primitive = {
  futures: [`${SYNC}::batch_semaphore::Acquire`],
  owners: [...GUARDS, ...PERMITS, RECEIVER],
  async awaited(look, node, above) {
    const semaphore = await look.number(look.self(node), 'semaphore');
    const wanted = await look.number(look.self(node), 'num_permits');
    if (semaphore === undefined) return undefined;
    const key = addr(semaphore);
    const around = await ownerOf(look, key, above);
    const free = await isFree(look, node, wanted ?? 1n);
    const wait = waitFor(key, around, Number(wanted ?? 1n));
    const writer = wait.kind === 'RwLock' && !free ? await writerBefore(look, node) : undefined;
    const enders =
      writer === undefined ? {} : { enders: { how: 'queued behind', before: writer, needs: 'all' as const } };
    return { ...wait, ...enders, free };
  },
};

/** No program has more that wait for one lock; a damaged queue must end. */
const MOST_QUEUED = 100_000;

/**
 * The next one before it in the queue that wants all permits: a lock goes to who waits longest, so nobody behind a
 * writer gets it from those who have it. A queue's `next` leads to who came before.
 */
async function writerBefore(look: Look, node: AwaitNode): Promise<Addr | undefined> {
  const type = look.typeOf(node);
  const waiter = type && look.part(type, 'node');
  const links = waiter && partCalled(waiter.type, 'PointersInner');
  const next = links && memberAt(links.type, 'next');
  if (!waiter || !links || !next || (await look.number(look.self(node), 'queued')) === 0n) {
    return undefined;
  }
  const offset = waiter.offset + links.offset + next.offset;
  for (let at = node.address, count = 0; count < MOST_QUEUED; count++) {
    const before = await look.numberAt(addOffset(at, offset));
    if (!before) return undefined;
    at = addOffset(addr(before), -waiter.offset);
    if (((await look.number({ type, address: at }, 'num_permits')) ?? 0n) > 1n) return at;
  }
  return undefined;
}

/**
 * Permits are given to who waits longest: its waiter then lacks none. One that is not queued takes those that are left.
 */
async function isFree(look: Look, node: AwaitNode, wanted: bigint): Promise<boolean> {
  const self = look.self(node);
  if ((await look.number(self, 'queued')) !== 0n) return (await look.number(self, 'node.state')) === 0n;
  const semaphore = await look.behind(node, 'semaphore');
  const permits = semaphore && (await look.number(semaphore, 'permits'));
  return permits !== undefined && permits >> PERMIT_SHIFT >= wanted;
}

function waitFor(key: Addr, around: Pointed | undefined, wanted: number): Awaited {
  const address = around?.address ?? key;
  const name = nameOfType(around?.type);
  if (name === `${SYNC}::mpsc::chan::Chan`) {
    const counted = { of: 'receiver', count: 1 } as const;
    const enders = { how: 'to be taken from by', owners: [RECEIVER], key, needs: 'any', count: 1, counted } as const;
    return { kind: 'room', address, enders };
  }
  if (name === `${SYNC}::mutex::Mutex`)
    return { kind: 'Mutex', address, enders: { how: 'held by', owners: GUARDS, key, needs: 'all', count: 1 } };
  if (name === `${SYNC}::rwlock::RwLock`)
    return { kind: 'RwLock', address, enders: { how: 'held by', owners: GUARDS, key, needs: 'all' } };
  if (name === `${SYNC}::once_cell::OnceCell`)
    return { kind: 'OnceCell', address, enders: { how: 'to be set by', owners: PERMITS, key, needs: 'all', count: 1 } };
  const owners = [...PERMITS, ...GUARDS];
  const enders = { how: 'held by', owners, key, needs: 'any', count: 'unknown' } as const;
  return { kind: 'Semaphore', address, detail: plural(wanted, 'permit'), enders };
}

/** The lock or channel that a semaphore is a part of: what the `self` of a Future above leads to. */
async function ownerOf(look: Look, key: Addr, above: readonly AwaitNode[]): Promise<Pointed | undefined> {
  let found: Pointed | undefined;
  for (const node of above) {
    if (!node.future?.future.startsWith(`${SYNC}::`)) break;
    const target = await look.selfOf(node);
    const around = target && (await chanOf(look, target));
    if (around && key >= around.address && key < around.address + BigInt(around.size)) found = around;
  }
  return found;
}

/** A `Sender` only points to its channel. */
async function chanOf(look: Look, target: Pointed): Promise<Pointed | undefined> {
  const isSender = nameOfType(target.type) === `${SYNC}::mpsc::bounded::Sender`;
  return isSender ? look.pointerIn(target, 'chan') : target;
}

export const tokioPrimitives: readonly Primitive[] = [
  ...[semaphore, ...channels, joinHandle, joinSet, notified],
  timer(['tokio::time::sleep::Sleep'], (look, node) => deadlineIn(look, node, 'deadline', 'entry.deadline')),
];
