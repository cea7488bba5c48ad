/*
 * What of tokio ends by the clock, or by whom nothing in memory tells:
 *
 *   Sleep { deadline: Instant { std: Timespec { tv_sec, tv_nsec } }, .. }      Notified { notify: &Notify, .. }
 */

import { addr } from '../../base/addr.js';
import type { AwaitNode } from '../await-tree.js';
import { memberAt, numberAt, partCalled } from '../layout.js';
import type { Look, Primitive } from './resource.js';

export const tokioSleep: Primitive = {
  futures: ['tokio::time::sleep::Sleep'],
  async awaited(look, node) {
    const due = await deadline(look, node);
    return { kind: 'timer', address: undefined, ...(due === undefined ? {} : { detail: `due at ${due} s` }) };
  },
};

/** Seconds of the system's monotonic clock. */
async function deadline(look: Look, node: AwaitNode): Promise<string | undefined> {
  const type = look.typeOf(node);
  const instant = type && look.part(type, 'deadline');
  const time = instant && partCalled(instant.type, 'Timespec');
  const [seconds, nanoseconds] = ['tv_sec', 'tv_nsec'].map((name) => time && memberAt(time.type, name));
  const at = instant && time && instant.offset + time.offset;
  const bytes = at === undefined ? undefined : await look.context.memory.read(node.address, at + (time?.size ?? 0));
  if (at === undefined || !bytes || !seconds || !nanoseconds) return undefined;
  const whole = numberAt(bytes, { offset: at + seconds.offset, size: 8 });
  const parts = numberAt(bytes, { offset: at + nanoseconds.offset, size: 4 });
  return `${whole}.${String(parts).padStart(9, '0').slice(0, 3)}`;
}

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
