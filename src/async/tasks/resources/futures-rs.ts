/*
 * The locks and channels of the crates futures-util and futures-channel. A message is waited for by an adapter of a
 * stream, room by one of a sink; these lead to the channel's end through further adapters:
 *
 *   MutexLockFuture { mutex: Option<&Mutex { state, .. }>, .. }      MutexGuard { mutex: &Mutex }
 *   Next { stream: &mut Map { stream: Receiver { inner: Option<Arc<BoundedInner { num_senders, .. }>> }, .. } }
 *   Feed { sink: &mut Sender(Option<BoundedSenderInner { inner: Arc<BoundedInner>, .. }>), .. }
 *   oneshot::Receiver { inner: Arc<Inner { complete, .. }> }         oneshot::Sender { inner: Arc<Inner> }
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { type Die, DW_AT, DW_TAG } from '../../../dwarf/index.js';
import type { AwaitNode } from '../await-tree.js';
import { memberAt, numberAt, partCalled } from '../layout.js';
import { guarded, type Look, nameOfType, type Primitive } from './resource.js';
import { countedSenders } from './tokio-channels.js';

const MUTEX = 'futures_util::lock::mutex';

export const futuresMutex: Primitive = guarded({
  kind: 'Mutex',
  locks: [`${MUTEX}::Mutex`],
  futures: [`${MUTEX}::MutexLockFuture`, `${MUTEX}::OwnedMutexLockFuture`],
  guards: ['MutexGuard', 'OwnedMutexGuard', 'MappedMutexGuard'].map((name) => `${MUTEX}::${name}`),
  // `IS_LOCKED` of futures-util/src/lock/mutex.rs.
  lockedBit: 1n,
});

const MPSC = 'futures_channel::mpsc';
const RECEIVERS = [`${MPSC}::Receiver`, `${MPSC}::UnboundedReceiver`];
const SENDERS = [`${MPSC}::Sender`, `${MPSC}::UnboundedSender`];

/** The Futures that poll a stream, each in a module of its own. */
const STREAMING = ['Next', 'SelectNextSome', 'ForEach', 'Fold', 'Collect', 'Concat', 'Count', 'All', 'Any'];
const TRYING = ['TryNext', 'TryForEach', 'TryFold', 'TryCollect', 'TryConcat'];
const snake = (name: string): string => name.replace(/(?!^)[A-Z]/g, '_$&').toLowerCase();
const inStream = (module: string, names: readonly string[]): string[] =>
  names.map((name) => `futures_util::stream::${module}::${snake(name)}::${name}`);

export const futuresReceive: Primitive = {
  futures: [...inStream('stream', STREAMING), ...inStream('try_stream', TRYING), `${MPSC}::Recv`],
  owners: SENDERS,
  isAdapter: true,
  async awaited(look, node) {
    const end = await adapted(look, node, 'stream', RECEIVERS);
    const channel = end && (await look.pointerIn(end.type, end.address, 'inner'));
    if (!channel) return undefined;
    const senders = await look.number(channel, 'num_senders');
    const enders = { how: 'to be sent by', owners: SENDERS, key: channel.address, needs: 'any' } as const;
    return { kind: 'message', address: channel.address, enders: { ...enders, ...countedSenders(senders) } };
  },
};

export const futuresSend: Primitive = {
  futures: ['feed::Feed', 'flush::Flush'].map((name) => `futures_util::sink::${name}`),
  owners: RECEIVERS,
  isAdapter: true,
  async awaited(look, node) {
    const end = await adapted(look, node, 'sink', SENDERS);
    const sender = end && partCalled(end.type, 'BoundedSenderInner');
    const channel = sender && (await look.pointerIn(sender.type, addOffset(end.address, sender.offset), 'inner'));
    if (!channel) return undefined;
    const enders = { how: 'to be taken from by', owners: RECEIVERS, key: channel.address, needs: 'any' } as const;
    return { kind: 'room', address: channel.address, enders: { ...enders, count: 1 } };
  },
};

interface Value {
  readonly type: Die;
  readonly address: Addr;
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
): Promise<Value | undefined> {
  const type = look.typeOf(node);
  let at: Value | undefined = type && { type, address: node.address };
  for (let depth = 0; at && depth < MAX_ADAPTERS; depth++) {
    const typeName = nameOfType(at.type);
    if (ends.includes(typeName)) return at;
    at = at.type.tag === DW_TAG.pointer_type ? await behind(look, at) : inside(at, typeName, name);
  }
  return undefined;
}

async function behind({ context }: Look, { type, address }: Value): Promise<Value | undefined> {
  const target = type.follow(DW_AT.type);
  const bytes = target && (await context.memory.read(address, 8));
  return bytes && target && { type: target, address: addr(numberAt(bytes, { offset: 0, size: 8 })) };
}

/** The next adapter inwards. Others than those of the known crates may wait for something else, too. */
function inside({ type, address }: Value, typeName: string, name: string): Value | undefined {
  const names = typeName === 'core::pin::Pin' ? PINNED : /^futures_(?:util|channel)::/.test(typeName) ? [name] : [];
  const member = names.map((each) => memberAt(type, each)).find((each) => each !== undefined);
  return member && { type: member.type, address: addOffset(address, member.offset) };
}

const ONE_SENDER = ['futures_channel::oneshot::Sender'];

export const futuresOneshot: Primitive = {
  futures: ['futures_channel::oneshot::Receiver'],
  owners: ONE_SENDER,
  async awaited(look, node) {
    const type = look.typeOf(node);
    const inner = type && look.part(type, 'inner') && (await look.pointerIn(type, node.address, 'inner'));
    if (!inner) return undefined;
    const complete = await look.number(inner, 'complete');
    const counted =
      complete === undefined ? {} : { counted: { of: 'sender', count: complete === 0n ? 1 : 0 } as const };
    const enders = { how: 'to be sent by', owners: ONE_SENDER, key: inner.address, needs: 'any', count: 1 } as const;
    return { kind: 'oneshot', address: inner.address, enders: { ...enders, ...counted } };
  },
};

/** `pending()` waits for nothing, as its author wants. */
export const pendingForEver: Primitive = {
  futures: [
    'core::future::pending::Pending',
    'async_std::future::pending::Pending',
    'futures_lite::future::Pending',
    'futures_util::future::pending::Pending',
  ],
  awaited: async () => ({ kind: 'nothing', address: undefined }),
};

/** Has woken itself already. */
export const itsTurn: Primitive = {
  futures: [
    ...[
      'async_std::task::yield_now::YieldNow',
      'embassy_futures::yield_now::YieldNowFuture',
      'futures_lite::future::YieldNow',
      'tokio::task::yield_now::yield_now',
    ],
  ],
  awaited: async () => ({ kind: 'turn', address: undefined }),
};

/*
 * futures-intrusive: its locks' Futures and guards point to the lock.
 *
 *   GenericMutexLockFuture { mutex: Option<&GenericMutex>, .. }   GenericMutexGuard { mutex: &GenericMutex }
 *   GenericSemaphoreAcquireFuture { semaphore: Option<&GenericSemaphore>, .. }
 *   GenericSemaphoreReleaser { semaphore: &GenericSemaphore, permits }
 */

const SYNC = 'futures_intrusive::sync';

export const intrusiveMutex: Primitive = guarded({
  kind: 'Mutex',
  locks: [`${SYNC}::mutex::GenericMutex`],
  futures: [`${SYNC}::mutex::GenericMutexLockFuture`],
  guards: [`${SYNC}::mutex::GenericMutexGuard`],
});

export const intrusiveSemaphore: Primitive = guarded({
  kind: 'Semaphore',
  locks: [`${SYNC}::semaphore::GenericSemaphore`],
  futures: [`${SYNC}::semaphore::GenericSemaphoreAcquireFuture`],
  guards: [`${SYNC}::semaphore::GenericSemaphoreReleaser`],
});
