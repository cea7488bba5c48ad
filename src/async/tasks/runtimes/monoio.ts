/*
 * monoio, an executor a thread on io_uring. A task is a `Cell<T, S>` on the heap, as tokio's was:
 *
 *   Cell   header: Header { state, vtable, owner_id }
 *          core:   Core { scheduler: S, stage: Running(T) | Finished | Consumed }
 */

import { typeName } from '../../../dwarf/index.js';
import { memberAt, partCalled } from '../layout.js';
import { isCounted, typesOf } from './constants.js';
import { type HeaderTasks, runningOffset } from './header-tasks.js';

/** Bits of `Header::state`; above them is the number of references. monoio/src/task/state.rs */
const STATE = { RUNNING: 1n, COMPLETE: 2n, NOTIFIED: 4n, JOIN_INTEREST: 8n } as const;
const REFERENCES = 5n;

const TASK = 'monoio::task';

export const monoio: HeaderTasks = {
  name: 'monoio',
  wakers: /\bmonoio::task::waker::/,
  polls: /^monoio::task::core::CoreStage::poll(?:::|$)/,
  header: `${TASK}::core::Header`,
  vtable: `${TASK}::raw::Vtable`,
  entry: 'poll',
  function: `${TASK}::raw::poll`,
  futureAt({ debug }, generics) {
    const wanted = [...generics.values()].map(typeName).join();
    const cell = debug.typesNamed(`${TASK}::core::Cell`).find((each) => typesOf(each) === wanted);
    const core = cell && memberAt(cell, 'core.stage');
    const stage = core && partCalled(core.type, 'Stage');
    const header = cell && memberAt(cell, 'header');
    if (!core || !stage || !header) return undefined;
    const place = runningOffset({ ...stage, offset: core.offset + stage.offset });
    return place === undefined ? undefined : place - header.offset;
  },
  read(word) {
    const state = word('state');
    if (state === undefined || !isCounted(state >> REFERENCES)) return undefined;
    const has = (bit: bigint): boolean => (state & bit) !== 0n;
    const isOver = has(STATE.COMPLETE);
    const words = [isOver ? 'complete' : has(STATE.RUNNING) ? 'running' : 'idle'];
    if (has(STATE.NOTIFIED)) words.push('notified');
    if (has(STATE.JOIN_INTEREST)) words.push('join interest');
    return { isOver, state: words.join(', ') };
  },
};
