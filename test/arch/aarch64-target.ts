import { aarch64 } from '../../src/arch/aarch64/index.js';
import { probeCode } from '../../src/arch/aarch64/trampoline.js';
import { functions, helper } from './aarch64-functions.js';
import { assemble, EL1, Machine, order, place, smallRing, ways } from './aarch64-machine.js';
import type { ProbeTarget } from './probe-calls.js';

await aarch64.prepare();

/** PSTATE.BTYPE of an instruction behind `blr`: in guarded memory it must be a landing pad. */
const CALLED = 2n << 10n;

/**
 * Of what must point somewhere, x9 leads into the data, x28 to `helper`, x27 to the caller, x21 and x22 to nothing that
 * may be read. Flags are random.
 */
export const target: ProbeTarget = {
  ...{ code: probeCode, place, ways, smallRing, assemble, order, functions, helper },
  start: (harts) => Machine.start(harts),
  names: { argument: 'x0', pointer: 'x2', link: 'x30', lost: 'x16' },
  hart: { kind: 'hart', how: 'mpidr' },
  pointing: (next) => ({
    x27: place.done,
    x9: place.data + BigInt(8 * (next() % 8)),
    x21: 0n,
    x22: place.data + 4n,
    x28: place.helper,
    cpsr: EL1 | (BigInt(next() & 15) << 28n),
  }),
  called(code, registers) {
    const isPad = /^5f2403d5|^3f2303d5|^7f2303d5/.test(Buffer.from(code).toString('hex'));
    return { ...registers, cpsr: (registers.cpsr ?? 0n) | (isPad ? CALLED : 0n) };
  },
  /** `retaa` leaves the signature in x30, which a hooked return does not have. */
  known(registers, { x30 = 0n }) {
    const isSigned = x30 !== place.done && BigInt.asUintN(39, x30) === place.done;
    return isSigned ? { ...registers, x30 } : registers;
  },
};
