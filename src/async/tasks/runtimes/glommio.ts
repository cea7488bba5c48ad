/*
 * glommio, an executor a thread on io_uring. A task is one allocation that no type describes:
 *
 *   Header { state: u8, references, vtable, .. }   then the schedule function S, then the Future F or its result R
 */

import { layoutOf } from '../../../dwarf/index.js';
import { closableState } from './constants.js';
import { alignedTo, alignOf, type HeaderTasks } from './header-tasks.js';

/** Bits of `Header::state`. glommio/src/task/state.rs */
const STATE = { SCHEDULED: 1n, RUNNING: 2n, COMPLETED: 4n, CLOSED: 8n, HANDLE: 16n } as const;
/** Above them is nothing: where there is, the memory was freed. */
const ALL = 31n;

const TASK = 'glommio::task';

export const glommio: HeaderTasks = {
  name: 'glommio',
  wakers: /\bglommio::task::raw::/,
  polls: /^glommio::task::raw::RawTask::run(?:::|$)/,
  header: `${TASK}::header::Header`,
  vtable: `${TASK}::raw::TaskVTable`,
  entry: 'run',
  function: `${TASK}::raw::RawTask::run`,
  // As `RawTask::task_layout` computes it. S is a closure of glommio's. Were it a function's own type, its size would
  // be wrong: rustc's debug info has a pointer for what takes no room.
  futureAt({ debug }, generics) {
    const [header] = debug.typesNamed(`${TASK}::header::Header`);
    const [future, result, schedule] = ['F', 'R', 'S'].map((name) => generics.get(name));
    if (!header || !future || !result || !schedule) return undefined;
    const scheduleAt = alignedTo(layoutOf(header).size, alignOf(schedule));
    return alignedTo(scheduleAt + layoutOf(schedule).size, Math.max(alignOf(future), alignOf(result)));
  },
  read(word) {
    const state = word('state');
    if (state === undefined || state > ALL) return undefined;
    const { isOver, words } = closableState(state, STATE);
    return { isOver, state: words.join(', ') };
  },
};
