export { abandonedServer, serverOf, takenOutText, takeOverServer } from './abandoned-server.js';
export { type CoreStacks, copyCore, stacksInCore } from './core.js';
export { type DeterministicCommand, deterministicCommand } from './deterministic.js';
export { Gdbserver, type Subject } from './gdbserver.js';
export { unharmedStart, vectorDamage } from './gdbserver-vectors.js';
export { type LaunchOptions, launch } from './launch.js';
export { clockOf, firstBoot, type Machine, onlyStops, startMachine } from './machine.js';
export { MachineKept } from './machine-kept.js';
export type { AnyHit, CallHit, Handler, PollHit, PollReturn, Probe, ProbeOptions, UnseenFuture } from './probe.js';
export type { Qemu } from './qemu.js';
export { type RunningCopy, RunningProcess } from './running-copy.js';
export { abortAtSignal, ignoreRepeats, onSignals, repeatMs, Supervisor, waitsForEnd } from './supervisor.js';
export { type AttachOptions, attach, type Plugins, type RunOptions, Target } from './target.js';
export { copyProcess, copyTarget, type TargetCopy } from './task-copy.js';
export {
  type BacktraceOptions,
  dumpView,
  type FoundTasks,
  findStuck,
  type HartBacktrace,
  linesOf,
  runtimesCalled,
  stacksAt,
  type TaskOptions,
  type TaskView,
  tasksIn,
  taskView,
  type Understood,
  understandFutures,
} from './views.js';
export { type WantedLock, wantedLocks } from './wanted-locks.js';
