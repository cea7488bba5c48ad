/*
 * What of tokio ends by the clock, or by whom nothing in memory tells:
 *
 *   Sleep { deadline: Instant { std: Timespec { tv_sec, tv_nsec } }, .. }      Notified { notify: &Notify, .. }
 */

import { addr } from '../../base/addr.js';
import { deadlineIn, type Primitive } from './resource.js';

export const tokioSleep: Primitive = {
  futures: ['tokio::time::sleep::Sleep'],
  async awaited(look, node) {
    const due = await deadlineIn(look, { type: look.typeOf(node), address: node.address }, 'deadline');
    return { kind: 'timer', address: undefined, ...(due === undefined ? {} : { detail: `due at ${due} s` }) };
  },
};

const watches = 'tokio::sync::watch::Receiver';

export const tokioNotify: Primitive = {
  futures: ['tokio::sync::notify::Notified', 'tokio::sync::notify::OwnedNotified'],
  async awaited(look, node, above) {
    const type = look.typeOf(node);
    const notify = type && look.part(type, 'notify') && (await look.pointerIn(type, node.address, 'notify'));
    if (!notify) return undefined;
    const isWatch = above.some(({ future }) => future?.future.startsWith(watches));
    return { kind: isWatch ? 'watch' : 'Notify', address: addr(notify.address) };
  },
};
