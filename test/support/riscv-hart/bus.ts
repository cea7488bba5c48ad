// Memory and devices of the simulated board: RAM, a ROM that takes writes without keeping them, and the two devices of QEMU's
// virt machine that the counted program uses.

/** A region of bytes. */
interface Region {
  readonly base: number;
  readonly bytes: Uint8Array;
  readonly writable: boolean;
}

const RAM = 0x8000_0000;
const CONSOLE = 0x1000_0000;
const FINISHER = 0x10_0000;
const FINISHED = 0x3333;

export class Bus {
  /** What the program has printed. */
  output = '';
  /** Set once the program has ended itself. */
  status: number | undefined;
  readonly #regions: readonly Region[];

  constructor(rom: number) {
    this.#regions = [
      { base: RAM, bytes: new Uint8Array(64 * 1024), writable: true },
      { base: rom, bytes: new Uint8Array(4096), writable: false },
    ];
  }

  /** Puts bytes anywhere, as a programmer does before the board is switched on. False where nothing is. */
  load(address: number, bytes: Uint8Array): boolean {
    const region = this.#region(address, bytes.length);
    region?.bytes.set(bytes, address - region.base);
    return region !== undefined;
  }

  /** A view of memory; undefined where none is. Devices read as nothing. */
  read(address: number, length: number): Uint8Array | undefined {
    const region = this.#region(address, length);
    return region?.bytes.subarray(address - region.base, address - region.base + length);
  }

  /** False where nothing is. */
  write(address: number, bytes: Uint8Array): boolean {
    if (address === CONSOLE) {
      this.output += String.fromCharCode(bytes[0] ?? 0);
      return true;
    }
    if (address === FINISHER) {
      const [low = 0, high = 0, status = 0] = bytes;
      if ((low | (high << 8)) === FINISHED) this.status = status;
      return true;
    }
    const region = this.#region(address, bytes.length);
    if (region?.writable === true) region.bytes.set(bytes, address - region.base);
    return region !== undefined;
  }

  #region(address: number, length: number): Region | undefined {
    return this.#regions.find(({ base, bytes }) => address >= base && address + length <= base + bytes.length);
  }
}
