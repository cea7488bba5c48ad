/*
 * embassy-sync and embassy-time. Locks and channels are mostly statics, which have a name. A channel's other end is a
 * shared reference that anybody may have, and to a static code needs none in memory. A Mutex has a guard:
 *
 *   MutexGuard { mutex: &Mutex { state: .. RefCell<State { locked, .. }>, .. } }
 *   ReceiveFuture { channel: &Channel }      Timer { expires_at, .. }
 */

import type { AwaitNode } from '../await-tree.js';
import type { Pointed } from '../references.js';
import { type Look, type Primitive, reachable, timer } from './resource.js';

const SYNC = 'embassy_sync';
const GUARDS = [`${SYNC}::mutex::MutexGuard`, `${SYNC}::mutex::MappedMutexGuard`];

/** What a Future written by hand, or the closure of a `poll_fn`, points to. */
async function pointed(look: Look, node: AwaitNode, name: string): Promise<Pointed | undefined> {
  for (const path of [name, `f.${name}`, `f._ref__${name}`]) {
    const found = await look.pointerIn(look.self(node), path);
    if (found) return found;
  }
  return look.selfOf(node);
}

const CHANNEL = `${SYNC}::channel::Channel`;
const SIGNAL = `${SYNC}::signal::Signal`;

const channelOf = (kind: string, ...futures: readonly string[]): Primitive => ({
  futures: futures.map((name) => `${SYNC}::channel::${name}`),
  owners: [`&${CHANNEL}`],
  async awaited(look, node) {
    const channel = await pointed(look, node, 'channel');
    return channel && { kind, address: channel.address, enders: reachable(CHANNEL, channel.address) };
  },
});

const mutex: Primitive = {
  futures: [`${SYNC}::mutex::lock`, `${SYNC}::mutex::Mutex::lock`],
  owners: GUARDS,
  async awaited(look, node) {
    const lock = await pointed(look, node, 'self');
    if (!lock) return undefined;
    const enders = { how: 'held by', owners: GUARDS, key: lock.address, needs: 'all', count: 1 } as const;
    return { kind: 'Mutex', address: lock.address, enders, free: (await isLocked(look, lock)) === false };
  },
};

async function isLocked(look: Look, lock: Pointed): Promise<boolean | undefined> {
  const around = look.member(lock, 'state');
  const state = around && look.within(around, 'State');
  const locked = state && (await look.number(state, 'locked'));
  return locked === undefined ? undefined : locked !== 0n;
}

export const embassyPrimitives: readonly Primitive[] = [
  channelOf('message', 'ReceiveFuture', 'ReceiveReadyFuture', 'DynamicReceiveFuture'),
  channelOf('room', 'SendFuture', 'DynamicSendFuture'),
  mutex,
  {
    futures: [`${SYNC}::signal::wait`, `${SIGNAL}::wait`],
    owners: [`&${SIGNAL}`],
    async awaited(look, node) {
      const signal = await pointed(look, node, 'self');
      return signal && { kind: 'Signal', address: signal.address, enders: reachable(SIGNAL, signal.address) };
    },
  },
  // A Timer, or the closure in `Ticker::next`.
  timer(
    ['timer::Timer', 'timer::next', 'timer::Ticker::next'].map((name) => `embassy_time::${name}`),
    async (look, node) => {
      const instant = await pointed(look, node, 'self__expires_at');
      const tick = await look.number(instant ?? look.self(node), instant ? 'ticks' : 'expires_at.ticks');
      return tick === undefined ? undefined : `tick ${tick}`;
    },
  ),
];
