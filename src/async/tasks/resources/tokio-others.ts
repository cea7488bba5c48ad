/*
 * What of tokio ends by the clock, or by anybody who has a pointer to it:
 *
 *   Barrier { state: Mutex<BarrierState { arrived, .. }>, n, wait: watch::Receiver }
 *   Sleep { deadline: Instant { std: Timespec { tv_sec, tv_nsec } }, .. }      Notified { notify: &Notify, .. }
 */

import { addOffset, addr } from '../../../base/addr.js';
import type { AwaitNode } from '../await-tree.js';
import { memberAt, partCalled } from '../layout.js';
import { type Awaited, deadlineIn, type Look, type Primitive, reachable, timer } from './resource.js';

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
  const { type, address } = barrier;
  const mutex = look.part(type, 'state');
  const state = mutex && partCalled(mutex.type, 'BarrierState');
  const at = mutex && state && { type: state.type, address: addOffset(address, mutex.offset + state.offset) };
  const [arrived, all] = [at && (await look.number(at, 'arrived')), await look.number(barrier, 'n')];
  const detail = arrived === undefined || all === undefined ? {} : { detail: `${arrived} of ${all} have come` };
  return { kind: 'Barrier', address, ...detail, enders: reachable(BARRIER, address) };
}

export const tokioOthers: readonly Primitive[] = [
  notified,
  timer(['tokio::time::sleep::Sleep'], (look, node) => deadlineIn(look, node, 'deadline')),
];
