/*
 * futures-intrusive: its locks' Futures and guards point to the lock.
 *
 *   GenericMutexLockFuture { mutex: Option<&GenericMutex>, .. }   GenericMutexGuard { mutex: &GenericMutex }
 *   GenericSemaphoreAcquireFuture { semaphore: Option<&GenericSemaphore>, .. }
 *   GenericSemaphoreReleaser { semaphore: &GenericSemaphore, permits }
 */

import { guarded } from './guarded.js';
import type { Primitive } from './resource.js';

const SYNC = 'futures_intrusive::sync';

export const intrusiveMutex: Primitive = guarded({
  kind: 'Mutex',
  locks: [`${SYNC}::mutex::GenericMutex`],
  futures: [`${SYNC}::mutex::GenericMutexLockFuture`],
  guards: [`${SYNC}::mutex::GenericMutexGuard`],
});
export const intrusiveSemaphore: Primitive = guarded({
  kind: 'Semaphore',
  locks: [`${SYNC}::semaphore::GenericSemaphore`],
  futures: [`${SYNC}::semaphore::GenericSemaphoreAcquireFuture`],
  guards: [`${SYNC}::semaphore::GenericSemaphoreReleaser`],
});
