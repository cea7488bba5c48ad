// A QEMU with memory that its guest does not know of, as `rsptrace run` starts it, for benchmarks that look at events or moments themselves.

import { startQemu } from '../../dist/api/qemu.js';
import { connect } from '../../dist/rsp/index.js';
import { HiddenMemory, planHiddenMemory } from '../../dist/scratch/index.js';

/** It stands at its first instruction. `use` gets its session, the memory, its end, its console so far; QEMU is killed behind it. */
export async function withQemu(command, use) {
  const plan = await planHiddenMemory(command);
  if ('refused' in plan) throw new Error(plan.refused);
  let text = '';
  const take = (piece) => {
    text += piece.toString('latin1');
  };
  const qemu = await startQemu(plan.command, take, { outlives: false });
  let session;
  try {
    const began = performance.now();
    session = await connect(`unix:${qemu.socket}`, { waitMs: 10_000 });
    const hidden = await HiddenMemory.reserve(session, plan);
    if ('refused' in hidden) throw new Error(hidden.refused);
    return await use({ session, scratch: { hidden }, began, ended: qemu.ended, console: () => text });
  } finally {
    session?.close();
    qemu.kill('SIGKILL');
    await qemu.ended;
    plan[Symbol.dispose]();
  }
}

/** A logger that calls `then` when trampolines are installed and the target is about to run on. */
export function whenInstalled(then) {
  const nothing = () => {};
  const info = (fields, message) => {
    if (message === 'trampolines are installed') then(fields);
  };
  return { trace: nothing, debug: nothing, info, warn: nothing, isLevelEnabled: (level) => level === 'info' };
}

/** A sink that hands on events alone. */
export function sinkOf(event = () => {}) {
  const nothing = () => {};
  return { begin: nothing, hart: nothing, flush: nothing, end: nothing, event };
}
