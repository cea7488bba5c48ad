/*
 * tokio's channels. Whoever has a sender can send:
 *
 *   mpsc      Receiver { chan: Rx { inner: Arc<Chan { tx_count, .. }> } }      Sender { chan: Tx { inner: Arc<Chan> } }
 *   broadcast Recv { receiver: &mut Receiver { shared: Arc<Shared { num_tx, .. }> } }   Sender { shared: Arc<Shared> }
 *   oneshot   Receiver { inner: Option<Arc<Inner>> }                          Sender { inner: Option<Arc<Inner>> }
 */

import { channel, type Primitive } from './resource.js';

const SYNC = 'tokio::sync';

const mpscOf = (module: string, prefix: string): Primitive =>
  channel({
    kind: 'message',
    futures: ['recv', 'recv_many'].map((name) => `${SYNC}::mpsc::${module}::${prefix}Receiver::${name}`),
    owners: [`${SYNC}::mpsc::${module}::${prefix}Sender`],
    shared: (look, node) => look.behind(node, 'self', 'chan'),
    count: 'tx_count',
  });

export const tokioChannels: readonly Primitive[] = [
  mpscOf('bounded', ''),
  mpscOf('unbounded', 'Unbounded'),
  channel({
    kind: 'message',
    futures: [`${SYNC}::broadcast::Recv`],
    owners: [`${SYNC}::broadcast::Sender`],
    shared: (look, node) => look.behind(node, 'receiver', 'shared'),
    count: 'num_tx',
  }),
  channel({
    kind: 'oneshot',
    futures: [`${SYNC}::oneshot::Receiver`],
    owners: [`${SYNC}::oneshot::Sender`],
    shared: (look, node) => look.behind(node, 'inner'),
    // `VALUE_SENT`, which a sender sets when it sends, and when it is dropped. tokio/src/sync/oneshot.rs
    ...{ count: 'state', goneBits: 2n },
  }),
];
