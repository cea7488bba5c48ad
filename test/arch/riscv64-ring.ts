import type { RingGeometry } from '../../src/arch/inject/ring-contract.js';
import { probeCode } from '../../src/arch/riscv64/trampoline.js';
import { placesAt, smallRingAt, TestRing, waysTo } from './ring.js';
import type { Machine } from './riscv64-machine.js';

export { plainEntry, unsigned, type Way } from './ring.js';

/** The far code is 32 MiB from the function: out of a jal's reach. */
export const place = placesAt(0x8000_0000, 0x210_0000);
export const smallRing = smallRingAt(place);
export const ways = waysTo(place);

export class Ring extends TestRing {
  constructor(machine: Machine, geometry: RingGeometry = smallRing) {
    super(machine, { place, code: probeCode }, geometry);
  }
}
