/*
 * compio, an executor a thread on io_uring. A task is a `TaskAlloc<F>` on the heap:
 *
 *   TaskAlloc   header: Header { state, vtable, shared, .. }
 *               future: the Future F, or its result, or neither any more: then `shared` is null
 */

import { typeName } from '../../../dwarf/index.js';
import { memberAt } from '../layout.js';
import { isCounted, typesOf } from './constants.js';
import type { HeaderTasks } from './header-tasks.js';

/** Bits of `Header::state`; above them is the number of references. compio-executor/src/task/state.rs */
const STATE = { SCHEDULED: 1n, COMPLETED: 16n, NOT_CANCELLED: 64n } as const;
const REFERENCES = 7n;

const TASK = 'compio_executor::task';

export const compio: HeaderTasks = {
  name: 'compio',
  wakers: /\bcompio_executor::(?:waker|task)::/,
  polls: /^compio_executor::task::TaskAlloc::run_future(?:::|$)/,
  header: `${TASK}::Header`,
  vtable: `${TASK}::TaskVtable`,
  entry: 'run_future',
  function: `${TASK}::TaskAlloc::run_future`,
  futureAt({ debug }, generics) {
    const [future] = [...generics.values()].map(typeName);
    const task = debug.typesNamed(`${TASK}::TaskAlloc`).find((each) => typesOf(each) === future);
    const [place, header] = task ? [memberAt(task, 'future'), memberAt(task, 'header')] : [];
    return place && header && place.offset - header.offset;
  },
  read(word) {
    const state = word('state');
    if (state === undefined || !isCounted(state >> REFERENCES)) return undefined;
    const has = (bit: bigint): boolean => (state & bit) !== 0n;
    if (has(STATE.COMPLETED)) return { isOver: true, state: 'complete' };
    if (word('shared') === 0n) return { isOver: true, state: 'cancelled' };
    const now = has(STATE.SCHEDULED) ? 'scheduled' : 'idle';
    return { isOver: false, state: has(STATE.NOT_CANCELLED) ? now : `${now}, cancelled` };
  },
};
