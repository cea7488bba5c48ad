import { smol } from './async-lock.js';
import { embassyPrimitives } from './embassy.js';
import { futuresCrates } from './futures-rs.js';
import type { Primitive } from './resource.js';
import { sockets } from './sockets.js';
import { tokioPrimitives } from './tokio.js';

export { type Awaited, type Counted, type Enders, Look, type Primitive } from './resource.js';
export { socketThatWakes } from './sockets.js';

/** Of any crate: Futures that wait for nobody. */
const alone: readonly Primitive[] = [
  // `pending()` waits for nothing, as its author wants.
  {
    futures: [
      'core::future::pending::Pending',
      'async_std::future::pending::Pending',
      'futures_lite::future::Pending',
      'futures_util::future::pending::Pending',
    ],
    awaited: async () => ({ kind: 'nothing', address: undefined }),
  },
  // Has woken itself already.
  {
    futures: [
      'async_std::task::yield_now::YieldNow',
      'embassy_futures::yield_now::YieldNowFuture',
      'futures_lite::future::YieldNow',
      'tokio::task::yield_now::yield_now',
    ],
    awaited: async () => ({ kind: 'turn', address: undefined }),
  },
];

/** The locks, channels, handles and timers that are known. */
export const primitives: readonly Primitive[] = [
  ...[...tokioPrimitives, ...sockets, ...embassyPrimitives, ...smol, ...futuresCrates, ...alone],
];
