// A JTAG test access port (IEEE 1149.1) with the debug transport module of RISC-V External Debug Support 0.13.2, chapter 6.
import type { DebugModule } from './debug-module.js';

/** The states in the order of figure 6-1; below, two hex digits a state: where TMS low and high lead. */
const State = {
  reset: 0,
  idle: 1,
  selectDr: 2,
  captureDr: 3,
  shiftDr: 4,
  exit1Dr: 5,
  pauseDr: 6,
  exit2Dr: 7,
  updateDr: 8,
  selectIr: 9,
  captureIr: 10,
  shiftIr: 11,
  exit1Ir: 12,
  pauseIr: 13,
  exit2Ir: 14,
  updateIr: 15,
} as const;
const nextState = Uint8Array.from(
  [...'10 12 39 45 45 68 67 48 12 a0 bc bc df de bf 12'.replaceAll(' ', '')].map((digit) => Number.parseInt(digit, 16)),
);

const IR_BITS = 5;
const Instruction = { idcode: 0x01, dtmcs: 0x10, dmi: 0x11 } as const;
/** Version 1, part 0x5253, manufacturer 0x29: nobody's in particular. The lowest bit is always set. */
export const IDCODE = 0x1525_3053;
const ADDRESS_BITS = 7;
const DMI_BITS = ADDRESS_BITS + 34;
/** dtmcs: version 0.13, seven address bits, no idle cycles needed. */
const DTMCS = (ADDRESS_BITS << 4) | 1;

export class Tap {
  readonly #module: DebugModule;
  #state: number = State.reset;
  #instruction: number = Instruction.idcode;
  /** The register that is shifted, as a ring: its lowest bit stands at `#at`. */
  readonly #bits = new Uint8Array(64);
  #length = 1;
  #at = 0;
  /** What the next capture of dmi shows. */
  #result = { address: 0, data: 0 };

  constructor(module: DebugModule) {
    this.#module = module;
  }

  /** The bit that would be sampled now. */
  get tdo(): number {
    return this.#bits[this.#at] ?? 0;
  }

  reset(): void {
    this.#state = State.reset;
    this.#instruction = Instruction.idcode;
  }

  /** A rising edge of TCK. */
  clock(tms: number, tdi: number): void {
    const state = this.#state;
    if (state === State.shiftDr || state === State.shiftIr) {
      this.#bits[this.#at] = tdi;
      this.#at = this.#at + 1 === this.#length ? 0 : this.#at + 1;
    }
    const next = nextState[2 * state + tms] ?? State.reset;
    this.#state = next;
    if (next === State.captureDr) this.#captureDr();
    else if (next === State.captureIr) this.#load(IR_BITS, 1, 0);
    else if (next === State.updateDr) this.#updateDr();
    else if (next === State.updateIr) this.#instruction = this.#field(0, IR_BITS);
    else if (next === State.reset) this.#instruction = Instruction.idcode;
  }

  #captureDr(): void {
    switch (this.#instruction) {
      case Instruction.idcode:
        this.#load(32, IDCODE, 0);
        break;
      case Instruction.dtmcs:
        this.#load(32, DTMCS, 0);
        break;
      case Instruction.dmi: {
        //   40      34 33             2 1  0
        //  |  address |      data      | op |    op 0: the last one has succeeded
        const { address, data } = this.#result;
        this.#load(DMI_BITS, data << 2, (data >>> 30) | (address << 2));
        break;
      }
      default:
        this.#load(1, 0, 0);
    }
  }

  #updateDr(): void {
    if (this.#instruction !== Instruction.dmi) return;
    const op = this.#field(0, 2);
    const address = this.#field(34, ADDRESS_BITS);
    const data = this.#field(2, 32);
    if (op === 1) this.#result = { address, data: this.#module.read(address) };
    else if (op === 2) {
      this.#module.write(address, data);
      this.#result = { address, data };
    }
  }

  #load(length: number, low: number, high: number): void {
    this.#length = length;
    this.#at = 0;
    for (let bit = 0; bit < length; bit++) this.#bits[bit] = ((bit < 32 ? low : high) >>> (bit & 31)) & 1;
  }

  #field(start: number, length: number): number {
    let value = 0;
    for (let bit = 0; bit < length; bit++) {
      value |= (this.#bits[(this.#at + start + bit) % this.#length] ?? 0) << bit;
    }
    return value;
  }
}
