// RISC-V External Debug Support 0.13.2, chapter 5: two triggers of type mcontrol that match the address of an instruction.

/** tdata1 of an RV64 hart: type 2 in the top four bits, dmode below them. */
const MCONTROL = 2n << 60n;
const DMODE = 1n << 59n;
const ENTER_DEBUG_MODE = 1n << 12n;
const MACHINE = 1n << 6n;
const EXECUTE = 1n << 2n;
/** What can be set; everything else reads as zero: no loads, no stores, no chains, equality only. */
const WRITABLE = DMODE | ENTER_DEBUG_MODE | MACHINE | EXECUTE;
/** tinfo: only type 2. */
const TYPES = 1n << 2n;

export class Triggers {
  readonly #control: bigint[];
  readonly #address: bigint[];
  #selected = 0;
  /** The addresses that stop the hart. */
  #armed: ReadonlySet<bigint> = new Set();

  constructor(count: number) {
    this.#control = Array<bigint>(count).fill(MCONTROL);
    this.#address = Array<bigint>(count).fill(0n);
  }

  hits(pc: bigint): boolean {
    return this.#armed.size > 0 && this.#armed.has(pc);
  }

  /** A trigger register; undefined when the number is none. */
  read(csr: number): bigint | undefined {
    switch (csr) {
      case 0x7a0:
        return BigInt(this.#selected);
      case 0x7a1:
        return this.#control[this.#selected];
      case 0x7a2:
        return this.#address[this.#selected];
      case 0x7a4:
        return TYPES;
      default:
        return undefined;
    }
  }

  /** False when the number is none. */
  write(csr: number, value: bigint): boolean {
    if (csr === 0x7a0) {
      // A trigger that does not exist cannot be selected: how debuggers count them.
      if (value < BigInt(this.#control.length)) this.#selected = Number(value);
    } else if (csr === 0x7a1) {
      this.#control[this.#selected] = MCONTROL | (value & WRITABLE);
    } else if (csr === 0x7a2) {
      this.#address[this.#selected] = value;
    } else {
      return csr === 0x7a4;
    }
    const wanted = ENTER_DEBUG_MODE | MACHINE | EXECUTE;
    this.#armed = new Set(this.#address.filter((_, index) => ((this.#control[index] ?? 0n) & wanted) === wanted));
    return true;
  }
}
