/*
 * tokio's channels. Whoever has a sender can send:
 *
 *   mpsc      Receiver { chan: Rx { inner: Arc<Chan { tx_count, .. }> } }      Sender { chan: Tx { inner: Arc<Chan> } }
 *   broadcast Recv { receiver: &mut Receiver { shared: Arc<Shared { num_tx, .. }> } }   Sender { shared: Arc<Shared> }
 *   oneshot   Receiver { inner: Option<Arc<Inner>> }                          Sender { inner: Option<Arc<Inner>> }
 */

import type { Awaited, Counted, Enders, Look, Primitive } from './resource.js';

const SYNC = 'tokio::sync';

const mpscOf = (module: string, receiver: string, sender: string): Primitive => {
  const owners = [`${SYNC}::mpsc::${module}::${sender}`];
  const path = `${SYNC}::mpsc::${module}::${receiver}`;
  return {
    futures: [`${path}::recv`, `${path}::recv_many`],
    owners,
    async awaited(look, node) {
      const receiving = await look.selfOf(node);
      const chan = receiving?.type && (await look.pointerIn(receiving.type, receiving.address, 'chan'));
      if (!chan) return undefined;
      const senders = await look.number(chan, 'tx_count');
      const enders = { how: 'to be sent by', owners, key: chan.address, needs: 'any' } as const;
      return { kind: 'message', address: chan.address, enders: { ...enders, ...countedSenders(senders) } };
    },
  };
};

export const tokioMpsc: Primitive = mpscOf('bounded', 'Receiver', 'Sender');
export const tokioUnbounded: Primitive = mpscOf('unbounded', 'UnboundedReceiver', 'UnboundedSender');

const BROADCASTERS = [`${SYNC}::broadcast::Sender`];

export const tokioBroadcast: Primitive = {
  futures: [`${SYNC}::broadcast::Recv`],
  owners: BROADCASTERS,
  async awaited(look, node) {
    const type = look.typeOf(node);
    const receiver = type && look.part(type, 'receiver') && (await look.pointerIn(type, node.address, 'receiver'));
    const shared = receiver?.type && (await look.pointerIn(receiver.type, receiver.address, 'shared'));
    if (!shared) return undefined;
    const senders = await look.number(shared, 'num_tx');
    const enders = { how: 'to be sent by', owners: BROADCASTERS, key: shared.address, needs: 'any' } as const;
    return { kind: 'message', address: shared.address, enders: { ...enders, ...countedSenders(senders) } };
  },
};

/** `count` and `counted` of {@link Enders}, by a channel's own count. */
export function countedSenders(senders: bigint | undefined): {
  count: NonNullable<Enders['count']>;
  counted?: Counted;
} {
  const count = Number(senders);
  return senders === undefined ? { count: 'unknown' } : { count, counted: { of: 'sender', count } };
}

/** The bit of `Inner::state` that a sender sets when it sends, and when it is dropped. tokio/src/sync/oneshot.rs */
const VALUE_SENT = 2n;
const ONE_SENDER = [`${SYNC}::oneshot::Sender`];

export const tokioOneshot: Primitive = {
  futures: [`${SYNC}::oneshot::Receiver`],
  owners: ONE_SENDER,
  async awaited(look: Look, node): Promise<Awaited | undefined> {
    const type = look.typeOf(node);
    const inner = type && look.part(type, 'inner') && (await look.pointerIn(type, node.address, 'inner'));
    if (!inner) return undefined;
    const state = await look.number(inner, 'state');
    const counted: Counted | undefined =
      state === undefined ? undefined : { of: 'sender', count: (state & VALUE_SENT) === 0n ? 1 : 0 };
    const enders = { how: 'to be sent by', owners: ONE_SENDER, key: inner.address, needs: 'any', count: 1 } as const;
    return { kind: 'oneshot', address: inner.address, enders: { ...enders, ...(counted ? { counted } : {}) } };
  },
};
