/*
 * tokio's locks all wait in one place, `batch_semaphore::Acquire`: of a Mutex, a RwLock, a Semaphore, a OnceCell, or of
 * a channel with no room left. Which one, the Future above says by its `self`. Who has the permits has a guard:
 *
 *   Acquire { node: Waiter { state, .. }, semaphore: &batch_semaphore::Semaphore { permits, .. }, num_permits, queued }
 *   MutexGuard { lock: &Mutex { s: batch_semaphore::Semaphore } }      SemaphorePermit { sem: &Semaphore { ll_sem } }
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { plural } from '../../../text/index.js';
import type { AwaitNode } from '../await-tree.js';
import { memberAt, partCalled } from '../layout.js';
import type { Pointed } from '../references.js';
import { type Awaited, type Look, nameOfType, type Primitive } from './resource.js';

const SYNC = 'tokio::sync';
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

export const tokioSemaphore: Primitive = {
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
  const isSender = target.type && nameOfType(target.type) === `${SYNC}::mpsc::bounded::Sender`;
  return isSender && target.type ? look.pointerIn(target.type, target.address, 'chan') : target;
}
