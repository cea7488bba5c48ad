import {
  asyncMutex,
  asyncReceive,
  asyncRwLock,
  asyncSemaphore,
  asyncSend,
  asyncTaskHandle,
  asyncTimer,
} from './async-lock.js';
import { embassyMutex, embassyReceive, embassySend, embassySignal, embassyTimer } from './embassy.js';
import {
  futuresMutex,
  futuresOneshot,
  futuresReceive,
  futuresSend,
  intrusiveMutex,
  intrusiveSemaphore,
  itsTurn,
  pendingForEver,
} from './futures-rs.js';
import type { Primitive } from './resource.js';
import { asyncReady, streamed, tokioReadiness } from './sockets.js';
import { tokioBroadcast, tokioMpsc, tokioOneshot, tokioUnbounded } from './tokio-channels.js';
import { tokioJoin, tokioJoinSet } from './tokio-join.js';
import { tokioNotify, tokioSleep } from './tokio-others.js';
import { tokioSemaphore } from './tokio-semaphore.js';

export { type Awaited, type Counted, type Enders, Look, type Primitive } from './resource.js';
export { socketThatWakes } from './sockets.js';

/** The locks, channels, handles and timers that are known. */
export const primitives: readonly Primitive[] = [
  tokioSemaphore,
  tokioMpsc,
  tokioUnbounded,
  tokioBroadcast,
  tokioOneshot,
  tokioJoin,
  tokioJoinSet,
  tokioNotify,
  tokioSleep,
  tokioReadiness,
  asyncReady,
  streamed,
  embassyReceive,
  embassySend,
  embassyMutex,
  embassySignal,
  embassyTimer,
  asyncMutex,
  asyncSemaphore,
  asyncRwLock,
  asyncReceive,
  asyncSend,
  asyncTaskHandle,
  asyncTimer,
  futuresMutex,
  futuresReceive,
  futuresSend,
  futuresOneshot,
  intrusiveMutex,
  intrusiveSemaphore,
  pendingForEver,
  itsTurn,
];
