/*
 * The locks and channels of the crates futures-util and futures-channel; further below those of futures-intrusive. A
 * message is waited for by an adapter of a stream, room by one of a sink; these lead to the channel's end through
 * further adapters:
 *
 *   MutexLockFuture { mutex: Option<&Mutex { state, .. }>, .. }      MutexGuard { mutex: &Mutex }
 *   Next { stream: &mut Map { stream: Receiver { inner: Option<Arc<BoundedInner { num_senders, .. }>> }, .. } }
 *   Feed { sink: &mut Sender(Option<BoundedSenderInner { inner: Arc<BoundedInner>, .. }>), .. }
 *   oneshot::Receiver { inner: Arc<Inner { complete, .. }> }         oneshot::Sender { inner: Arc<Inner> }
 */

import { addOffset, addr } from '../../../base/addr.js';
import { type Die, DW_AT, DW_TAG } from '../../../dwarf/index.js';
import type { AwaitNode } from '../await-tree.js';
import { memberAt } from '../layout.js';
import { channel, guarded, type Look, nameOfType, type Primitive, type Value } from './resource.js';

const MUTEX = 'futures_util::lock::mutex';

const MPSC = 'futures_channel::mpsc';
const RECEIVERS = [`${MPSC}::Receiver`, `${MPSC}::UnboundedReceiver`];
const SENDERS = [`${MPSC}::Sender`, `${MPSC}::UnboundedSender`];

/** The Futures that poll a stream, each in a module of its own. */
const STREAMING = ['Next', 'SelectNextSome', 'ForEach', 'Fold', 'Collect', 'Concat', 'Count', 'All', 'Any'];
const TRYING = ['TryNext', 'TryForEach', 'TryFold', 'TryCollect', 'TryConcat'];
const snake = (name: string): string => name.replace(/(?!^)[A-Z]/g, '_$&').toLowerCase();
const inStream = (module: string, names: readonly string[]): string[] =>
  names.map((name) => `futures_util::stream::${module}::${snake(name)}::${name}`);

interface Adapted extends Value {
  readonly type: Die;
}
/** How a `Pin` calls its pointer, in newer and older standard libraries. */
const PINNED = ['pointer', '__pointer'];
/** Adapters nest so deep at most. */
const MAX_ADAPTERS = 32;

/** The end of a channel that adapters of futures-util lead to by their members of this name. */
async function adapted(
  look: Look,
  node: AwaitNode,
  name: 'stream' | 'sink',
  ends: readonly string[],
): Promise<Adapted | undefined> {
  for await (const each of inwards(look, node, name)) if (ends.includes(nameOfType(each.type))) return each;
  return undefined;
}

/** A Future, and what it leads to by the members of this name, each inside the last. */
async function* inwards(look: Look, node: AwaitNode, name: 'stream' | 'sink'): AsyncGenerator<Adapted> {
  const type = look.typeOf(node);
  let at: Adapted | undefined = type && { type, address: node.address };
  for (let depth = 0; at && depth < MAX_ADAPTERS; depth++) {
    yield at;
    at = at.type.tag === DW_TAG.pointer_type ? await behind(look, at) : inside(at, nameOfType(at.type), name);
  }
}

/**
 * Where streams have Futures that they poll as well as the stream inwards: `TakeUntil`, those that buffer, and those of
 * two streams. All others poll the Future that they have first.
 */
const ALSO_POLLED = /^(?:(?:stream|pointer|__pointer)\.)*(?:fut|in_progress_queue|stream[12])\b/;
const BUFFERS = [
  ...inStream('stream', ['Buffered', 'BufferUnordered']),
  ...inStream('try_stream', ['TryBuffered', 'TryBufferUnordered']),
];

/** Whether a stream is polled, too, besides all Futures that it, or what polls it, has. */
async function alsoWaits(look: Look, node: AwaitNode): Promise<boolean> {
  if (!node.awaits.every(({ path }) => ALSO_POLLED.test(path))) return false;
  for await (const each of inwards(look, node, 'stream'))
    if (BUFFERS.includes(nameOfType(each.type)) && (await isFull(look, each))) return false;
  return true;
}

/**
 * Whether a buffer takes nothing more before a job is done: BufferUnordered { in_progress_queue: FuturesUnordered
 * { head_all: *Task { len_all, .. }, .. }, max, .. }. One that keeps an order has a `BinaryHeap` of what is done, too.
 */
async function isFull(look: Look, buffer: Adapted): Promise<boolean> {
  const queue = look.member(buffer, 'in_progress_queue');
  const [jobs, done] = ['FuturesUnordered', 'BinaryHeap'].map((name) => queue && look.within(queue, name));
  const first = jobs && (await look.pointerIn(jobs, 'head_all'));
  const counts = [first && (await look.number(first, 'len_all')), done && (await look.number(done, 'data.len'))];
  const most = await look.number(buffer, 'max');
  return most !== undefined && (counts[0] ?? 0n) + (counts[1] ?? 0n) >= most;
}

async function behind(look: Look, { type, address }: Adapted): Promise<Adapted | undefined> {
  const target = type.follow(DW_AT.type);
  const to = target && (await look.numberAt(address));
  return target && to !== undefined ? { type: target, address: addr(to) } : undefined;
}

/** The next adapter inwards. Others than those of the known crates may wait for something else, too. */
function inside({ type, address }: Adapted, typeName: string, name: string): Adapted | undefined {
  const names = typeName === 'core::pin::Pin' ? PINNED : /^futures_(?:util|channel)::/.test(typeName) ? [name] : [];
  const member = names.map((each) => memberAt(type, each)).find((each) => each !== undefined);
  return member && { type: member.type, address: addOffset(address, member.offset) };
}

/*
 * futures-intrusive: its locks' Futures and guards point to the lock.
 *
 *   GenericMutexLockFuture { mutex: Option<&GenericMutex>, .. }   GenericMutexGuard { mutex: &GenericMutex }
 *   GenericMutex { state: lock_api::Mutex<MutexState { is_locked, .. }>, .. }
 *   GenericSemaphoreAcquireFuture { semaphore: Option<&GenericSemaphore>, .. }
 *   GenericSemaphoreReleaser { semaphore: &GenericSemaphore, permits }
 */
const INTRUSIVE = 'futures_intrusive::sync';

export const futuresCrates: readonly Primitive[] = [
  guarded({
    kind: 'Mutex',
    locks: [`${MUTEX}::Mutex`],
    futures: [`${MUTEX}::MutexLockFuture`, `${MUTEX}::OwnedMutexLockFuture`],
    guards: ['MutexGuard', 'OwnedMutexGuard', 'MappedMutexGuard'].map((name) => `${MUTEX}::${name}`),
    // `IS_LOCKED` of futures-util/src/lock/mutex.rs.
    lockedBit: 1n,
  }),
  channel({
    kind: 'message',
    futures: [...inStream('stream', STREAMING), ...inStream('try_stream', TRYING), `${MPSC}::Recv`],
    owners: SENDERS,
    ...{ isAdapter: true, alsoWaits },
    async shared(look, node) {
      const end = await adapted(look, node, 'stream', RECEIVERS);
      return end && look.pointerIn(end, 'inner');
    },
    count: 'num_senders',
  }),
  // What they also wait for, besides their jobs, is not reported.
  {
    futures: [...inStream('stream', ['ForEachConcurrent']), ...inStream('try_stream', ['TryForEachConcurrent'])],
    ...{ isAdapter: true, alsoWaits: async () => true, awaited: async () => undefined },
  },
  channel({
    kind: 'room',
    futures: ['feed::Feed', 'flush::Flush'].map((name) => `futures_util::sink::${name}`),
    owners: RECEIVERS,
    isAdapter: true,
    async shared(look, node) {
      const end = await adapted(look, node, 'sink', SENDERS);
      const sender = end && look.within(end, 'BoundedSenderInner');
      return sender && look.pointerIn(sender, 'inner');
    },
    isSingle: true,
  }),
  channel({
    kind: 'oneshot',
    futures: ['futures_channel::oneshot::Receiver'],
    owners: ['futures_channel::oneshot::Sender'],
    shared: (look, node) => look.behind(node, 'inner'),
    ...{ count: 'complete', goneBits: 1n },
  }),
  guarded({
    kind: 'Mutex',
    locks: [`${INTRUSIVE}::mutex::GenericMutex`],
    futures: [`${INTRUSIVE}::mutex::GenericMutexLockFuture`],
    guards: [`${INTRUSIVE}::mutex::GenericMutexGuard`],
    ...{ lockedIn: 'state.data.value.is_locked', lockedBit: 1n },
  }),
  guarded({
    kind: 'Semaphore',
    locks: [`${INTRUSIVE}::semaphore::GenericSemaphore`],
    futures: [`${INTRUSIVE}::semaphore::GenericSemaphoreAcquireFuture`],
    guards: [`${INTRUSIVE}::semaphore::GenericSemaphoreReleaser`],
  }),
];
