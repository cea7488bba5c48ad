import type { Primitive } from './resource.js';

/** `pending()` waits for nothing, as its author wants. */
export const pendingForEver: Primitive = {
  futures: [
    'core::future::pending::Pending',
    'async_std::future::pending::Pending',
    'futures_lite::future::Pending',
    'futures_util::future::pending::Pending',
  ],
  awaited: async () => ({ kind: 'nothing', address: undefined }),
};

/** Has woken itself already. */
export const itsTurn: Primitive = {
  futures: [
    ...[
      'async_std::task::yield_now::YieldNow',
      'embassy_futures::yield_now::YieldNowFuture',
      'futures_lite::future::YieldNow',
      'tokio::task::yield_now::yield_now',
    ],
  ],
  awaited: async () => ({ kind: 'turn', address: undefined }),
};
