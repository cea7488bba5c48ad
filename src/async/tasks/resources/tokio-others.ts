/*
 * What of tokio ends by the clock, or by anybody who has a pointer to it:
 *
 *   Barrier { state: Mutex<BarrierState { arrived, .. }>, n, wait: watch::Receiver }
 *   Sleep { deadline: Instant { std: Timespec { tv_sec, tv_nsec } }, .. }      Notified { notify: &Notify, .. }
 */

import { addOffset, addr } from '../../../base/addr.js';
import type { AwaitNode } from '../await-tree.js';
import { memberAt, partCalled } from '../layout.js';
import { type Awaited, deadlineIn, type Look, type Primitive, reachable } from './resource.js';
import { countedSenders } from './tokio-channels.js';

export const tokioSleep: Primitive = {
  futures: ['tokio::time::sleep::Sleep'],
  async awaited(look, node) {
    const due = await deadlineIn(look, { type: look.typeOf(node), address: node.address }, 'deadline');
    return { kind: 'timer', address: undefined, detail: due === undefined ? undefined : `due at ${due} s` };
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
    const watch = above.find(({ future }) => future?.future.startsWith(watches));
    if (!watch) return { kind: 'Notify', address: key, enders: reachable(NOTIFY, key) };
    const { counted } = countedSenders(await watchSenders(look, watch));
    const enders = { how: 'to be sent by', owners: WATCH_SENDERS, key, needs: 'any', count: 'anybody' } as const;
    return { kind: 'watch', address: key, enders: { ...enders, ...(counted ? { counted } : {}) } };
  },
};

/** How many senders a watch has. tokio counts them since 1.37. */
async function watchSenders(look: Look, node: AwaitNode): Promise<bigint | undefined> {
  const receiver = await look.selfOf(node);
  const shared = receiver?.type && (await look.pointerIn(receiver.type, receiver.address, 'shared'));
  const isCounted = shared?.type && memberAt(shared.type, 'ref_count_tx') !== undefined;
  return isCounted ? look.number(shared, 'ref_count_tx') : undefined;
}

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
