// RISC-V External Debug Support 0.13.2, chapter 5: triggers of type mcontrol that match the address of an instruction, of a
// load or of a store, before it is carried out.

/** tdata1 of an RV64 hart: type 2 in the top four bits, dmode below them. */
const MCONTROL = 2n << 60n;
const DMODE = 1n << 59n;
const ENTER_DEBUG_MODE = 1n << 12n;
const MACHINE = 1n << 6n;
/** What an instruction does with an address. */
const kinds = { load: 1n << 0n, store: 1n << 1n, execute: 1n << 2n } as const;
type Kind = keyof typeof kinds;
/** What can be set; everything else reads as zero: no chains, equality with the lowest address only, any size. */
const WRITABLE = DMODE | ENTER_DEBUG_MODE | MACHINE | kinds.load | kinds.store | kinds.execute;
/** tinfo: only type 2. */
const TYPES = 1n << 2n;

export class Triggers {
  readonly #control: bigint[];
  readonly #address: bigint[];
  #selected = 0;
  /** The addresses that stop the hart. */
  #armed: Readonly<Record<Kind, ReadonlySet<bigint>>> = { load: new Set(), store: new Set(), execute: new Set() };

  constructor(count: number) {
    this.#control = Array<bigint>(count).fill(MCONTROL);
    this.#address = Array<bigint>(count).fill(0n);
  }

  hits(kind: Kind, address: bigint): boolean {
    const armed = this.#armed[kind];
    return armed.size > 0 && armed.has(address);
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
    this.#armed = { load: this.#of('load'), store: this.#of('store'), execute: this.#of('execute') };
    return true;
  }

  #of(kind: Kind): ReadonlySet<bigint> {
    const wanted = ENTER_DEBUG_MODE | MACHINE | kinds[kind];
    return new Set(this.#address.filter((_, index) => ((this.#control[index] ?? 0n) & wanted) === wanted));
  }
}
