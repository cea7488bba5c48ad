import { type Addr, addOffset } from '../../base/addr.js';
import type { CounterCalibration } from '../inject/process-code.js';
import { Assembler, mrs, nop } from './assembler.js';
import { CNTFRQ_EL0, CNTVCT_EL0 } from './system-numbers.js';

/** The processor says how fast its counter is; no stub gives its value. The code runs for two instructions, at EL1. */
export const calibration: CounterCalibration = {
  referenceHz: 1,
  reference: async () => 0,
  code(at: Addr) {
    const code = new Assembler(at);
    code.emit(mrs(0, CNTVCT_EL0), mrs(1, CNTFRQ_EL0), nop);
    return { bytes: code.finish(), breakpoint: addOffset(at, 8) };
  },
  changes: ['x0', 'x1', 'pc'],
  begin: () => undefined,
  result(registers) {
    const [counter, rate] = [registers.register('x0'), registers.register('x1')];
    if (counter === undefined || rate === undefined) return undefined;
    return { counter: Number(counter), elapsed: Number(rate), reference: 1 };
  },
};
