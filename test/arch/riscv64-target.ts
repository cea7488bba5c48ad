import { probeCode } from '../../src/arch/riscv64/trampoline.js';
import type { ProbeTarget } from './probe-calls.js';
import { functions, helper } from './riscv64-functions.js';
import { assemble, Machine, order } from './riscv64-machine.js';
import { place, smallRing, ways } from './riscv64-ring.js';

/** Of what must point somewhere, t1 and tp lead into the data, s11 to `helper`, s2 and s3 to nothing that may be read. */
export const target: ProbeTarget = {
  ...{ code: probeCode, place, ways, smallRing, assemble, order, functions, helper },
  start: (harts) => Machine.start(harts),
  names: { argument: 'a0', pointer: 'a2', link: 'ra', lost: 't0' },
  hart: { kind: 'hart', how: 'tp' },
  pointing: (next) => ({
    zero: 0n,
    t1: place.data + BigInt(8 * (next() % 8)),
    tp: place.data + BigInt(8 * (next() % 8)),
    s2: 0n,
    s3: place.data + 4n,
    s11: place.helper,
  }),
};
