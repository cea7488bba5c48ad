export { type ClockReader, findClock } from './clock.js';
export type { ClockLeak, GoOn, StopLeak, UnknownRest } from './clock-leak.js';
export { type ClockName, clockNames } from './clock-names.js';
export { type ClosedCounter, CounterGate, closedCounter, isInFirmware } from './counter-gate.js';
export { type InstructionClock, instructionClock } from './instruction-clock.js';
export { RepeatedLeak } from './repeated-leak.js';
export { SteadyClock } from './steady-clock.js';
export { JUMPS, SteppedLeak } from './stepped-leak.js';
