/*
 * What smol's programs wait for: async-lock, async-channel, async-task's handles and async-io's timers. Their Futures
 * point to what they wait for in several layers of wrappers:
 *
 *   Lock { _inner: .. LockInner { mutex: &Mutex { state, .. }, .. } }
 *   MutexGuard(&Mutex)      SemaphoreGuard(&Semaphore)
 *   Recv { _inner: .. RecvInner { receiver: &Receiver { channel: Arc<Channel { sender_count, .. }> }, .. } }
 *   Task { ptr: NonNull<()> } of a task's header      Timer { when: Option<Instant>, .. }
 */

import { addr } from '../../../base/addr.js';
import type { AwaitNode } from '../await-tree.js';
import { channel, deadlineIn, guarded, type Look, nameOfType, type Primitive, timer } from './resource.js';

const LOCK = 'async_lock';
/** The bit of `Mutex::state`; above it those are counted who wait for too long. async-lock/src/mutex.rs */
const LOCKED = 1n;

const inModule = (module: string, ...names: readonly string[]): string[] =>
  names.map((name) => `${LOCK}::${module}::${name}`);

/**
 * Of `RawRwLock::state`: a writer has the lock, or is the one that waits for its readers. Above it readers are
 * counted. async-lock/src/rwlock/raw.rs
 */
const WRITER = 1n;
const RAW_LOCK = `${LOCK}::rwlock::raw::RawRwLock`;
const LOCKING = ['Read', 'UpgradableRead', 'Write', 'Upgrade'];
const rwGuards = (which: string): readonly string[] =>
  inModule('rwlock', `RwLock${which}Guard`, `RwLock${which}GuardArc`);
const [READERS, UPGRADABLE, WRITERS] = [rwGuards('Read'), rwGuards('UpgradableRead'), rwGuards('Write')];

/**
 * Its mutex is of one that writes, or has an upgradable guard. A writer that has it waits for the readers, and all who
 * come after wait for the writer.
 */
const rwLock: Primitive = {
  futures: inModule('rwlock::futures', ...LOCKING, ...LOCKING.map((name) => `${name}Arc`)),
  owners: [...READERS, ...UPGRADABLE, ...WRITERS],
  async awaited(look, node) {
    const lock = await look.pointerTo(node, [RAW_LOCK]);
    const state = lock && (await look.number(lock, 'state'));
    const mutex = lock && (await look.number(lock, 'mutex.state'));
    if (!lock || state === undefined || mutex === undefined) return undefined;
    const { address } = lock;
    const wait = { kind: 'RwLock', address } as const;
    const enders = { how: 'held by', key: address, needs: 'all' } as const;
    const readers = Number(state >> WRITER);
    const forReaders =
      readers === 0 ? { ...wait, free: true } : { ...wait, enders: { ...enders, owners: READERS, count: readers } };
    if (await isFirst(look, node)) return { ...forReaders, isFirst: true };
    const isWritten = (state & WRITER) !== 0n;
    const wants = nameOfType(look.typeOf(node)).replace(/^.*::|Arc$/g, '');
    if (wants === 'Read' ? !isWritten : (mutex & LOCKED) === 0n)
      return wants === 'Write' ? forReaders : { ...wait, free: true };
    // A writer among readers has no guard yet.
    if (isWritten && readers > 0) return { ...wait, enders: { how: 'queued behind', before: address, needs: 'all' } };
    const owners = isWritten ? WRITERS : UPGRADABLE;
    return { ...wait, enders: { ...enders, before: address, owners, count: 1 } };
  },
};

/** Whether it has its lock's mutex and waits for readers only: an upgrade, or a writer that listens for their end. */
async function isFirst(look: Look, node: AwaitNode): Promise<boolean> {
  const self = look.self(node);
  const write = look.within(self, 'RawWrite');
  if (!write) return look.within(self, 'RawUpgrade') !== undefined;
  return (await look.number(write, 'no_readers')) !== 0n;
}

function channelOf(kind: 'message' | 'room', future: string, own: string, other: string): Primitive {
  return channel({
    kind,
    futures: [`async_channel::${future}`],
    owners: [`async_channel::${other}`],
    async shared(look, node) {
      const end = await look.pointerTo(node, [`async_channel::${own}`]);
      return end && look.pointerIn(end, 'channel');
    },
    count: `${other.toLowerCase()}_count`,
  });
}

const taskHandle: Primitive = {
  futures: ['async_task::task::Task', 'async_task::task::FallibleTask'],
  async awaited(look, node) {
    const path = nameOfType(look.typeOf(node)).endsWith('FallibleTask') ? 'task.ptr' : 'ptr';
    const header = await look.number(look.self(node), path);
    if (!header) return undefined;
    return { kind: 'task', address: undefined, enders: { how: 'itself', tasks: [addr(header)], needs: 'all' } };
  },
};

export const smol: readonly Primitive[] = [
  guarded({
    kind: 'Mutex',
    locks: inModule('mutex', 'Mutex'),
    futures: inModule('mutex', 'Lock', 'LockArc'),
    guards: inModule('mutex', 'MutexGuard', 'MutexGuardArc'),
    lockedBit: LOCKED,
  }),
  guarded({
    kind: 'Semaphore',
    locks: inModule('semaphore', 'Semaphore'),
    futures: inModule('semaphore', 'Acquire', 'AcquireArc'),
    guards: inModule('semaphore', 'SemaphoreGuard', 'SemaphoreGuardArc'),
  }),
  rwLock,
  channelOf('message', 'Recv', 'Receiver', 'Sender'),
  channelOf('room', 'Send', 'Sender', 'Receiver'),
  taskHandle,
  timer(['async_io::Timer'], (look, node) => deadlineIn(look, node, 'when')),
];
