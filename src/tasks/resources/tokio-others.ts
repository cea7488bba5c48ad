/*
 * What of tokio ends by the clock, or by anybody who has a pointer to it:
 *
 *   Barrier { state: Mutex<BarrierState { arrived, .. }>, n, wait: watch::Receiver }
 *   Sleep { deadline: Instant { std: Timespec { tv_sec, tv_nsec } }, .. }      Notified { notify: &Notify, .. }
 */

import { addOffset, addr } from '../../base/addr.js';
import type { AwaitNode } from '../await-tree.js';
import { partCalled } from '../layout.js';
import { type Awaited, deadlineIn, type Look, type Primitive, reachable } from './resource.js';

export const tokioSleep: Primitive = {
  futures: ['tokio::time::sleep::Sleep'],
  async awaited(look, node) {
    const due = await deadlineIn(look, { type: look.typeOf(node), address: node.address }, 'deadline');
    return { kind: 'timer', address: undefined, ...(due === undefined ? {} : { detail: `due at ${due} s` }) };
  },
};

const BARRIER = 'tokio::sync::barrier::Barrier';
const NOTIFY = 'tokio::sync::notify::Notify';
const watches = 'tokio::sync::watch::Receiver';
const WATCH_SENDERS = ['tokio::sync::watch::Sender'];

export const tokioNotify: Primitive = {
  futures: ['tokio::sync::notify::Notified', 'tokio::sync::notify::OwnedNotified'],
  owners: [`&${NOTIFY}`, `&${BARRIER}`, ...WATCH_SENDERS],
  async awaited(look, node, above) {
    const type = look.typeOf(node);
    const notify = type && look.part(type, 'notify') && (await look.pointerIn(type, node.address, 'notify'));
    if (!notify) return undefined;
    const barrier = above.find(({ future }) => future?.future.startsWith(`${BARRIER}::`));
    if (barrier) return barrierOf(look, barrier);
    const key = addr(notify.address);
    const isWatch = above.some(({ future }) => future?.future.startsWith(watches));
    if (!isWatch) return { kind: 'Notify', address: key, enders: reachable(NOTIFY, key) };
    const enders = { how: 'to be sent by', owners: WATCH_SENDERS, key, needs: 'any', count: 'anybody' } as const;
    return { kind: 'watch', address: key, enders };
  },
};

/** Its end comes with others: whoever has it may be one of them. */
async function barrierOf(look: Look, node: AwaitNode): Promise<Awaited | undefined> {
  const barrier = await look.selfOf(node);
  if (!barrier?.type) return undefined;
  const { type, address } = barrier;
  const mutex = look.part(type, 'state');
  const state = mutex && partCalled(mutex.type, 'BarrierState');
  const at = mutex && state && { type: state.type, address: addOffset(address, mutex.offset + state.offset) };
  const [arrived, all] = [at && (await look.number(at, 'arrived')), await look.number(barrier, 'n')];
  const detail = arrived === undefined || all === undefined ? {} : { detail: `${arrived} of ${all} have come` };
  return { kind: 'Barrier', address, ...detail, enders: reachable(BARRIER, address) };
}
