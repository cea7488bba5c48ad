import { littleEndian, littleEndianBytes } from '../../base/little-endian.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import { bytesToHex, decodeHex } from '../wire/hex.js';
import { Derived, type Reply, Request } from './request.js';
import type { Session } from './session.js';
import type { RegisterDescription, RegisterSpec, TargetDescription } from './target-description.js';

/** The registers of one hart at one stop: the bytes of `g`, decoded on request. */
export class RegisterBlock implements RegisterReader {
  /** In the order of `g`, little-endian; empty if the stub gave none. */
  readonly bytes: Uint8Array;
  readonly #target: TargetDescription;
  readonly #view: DataView;
  /** Non-zero where a byte is not available (`xx`). */
  readonly #missing: Uint8Array | undefined;
  /** Registers that are not in `g`, read one by one. */
  readonly #singles: ReadonlyMap<string, bigint | undefined> | undefined;

  constructor(
    target: TargetDescription,
    bytes: Uint8Array,
    missing?: Uint8Array,
    singles?: ReadonlyMap<string, bigint | undefined>,
  ) {
    this.bytes = bytes;
    this.#target = target;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#missing = missing;
    this.#singles = singles;
  }

  /** A register's value, unsigned; undefined when it is unknown, unavailable or was not read. */
  register(name: string): bigint | undefined {
    const register = this.#target.register(name);
    return register === undefined ? undefined : this.value(register);
  }

  /** The same for a register that was looked up before. */
  value(register: RegisterDescription): bigint | undefined {
    const offset = register.offsetInG;
    if (this.#singles?.has(register.name)) return this.#singles.get(register.name);
    if (offset === undefined) return undefined;
    const size = register.bits >> 3;
    if (offset + size > this.bytes.length) return undefined;
    if (this.#missing?.subarray(offset, offset + size).some((byte) => byte !== 0)) {
      return undefined;
    }
    return size === 8 ? this.#view.getBigUint64(offset, true) : littleEndian(this.bytes, offset, size);
  }

  /** The same block with some registers changed; all of them must lie in `g`. */
  changed(values: ReadonlyMap<RegisterDescription, bigint>): RegisterBlock {
    const bytes = this.bytes.slice();
    const missing = this.#missing?.slice();
    for (const [register, value] of values) {
      const offset = register.offsetInG ?? bytes.length;
      const size = Math.min(register.bits >> 3, bytes.length - offset);
      bytes.set(littleEndianBytes(value, size), offset);
      missing?.fill(0, offset, offset + size);
    }
    return new RegisterBlock(this.#target, bytes, missing, this.#singles);
  }

  /** The same block and registers that are not in `g`. */
  with(singles: ReadonlyMap<string, bigint | undefined>): RegisterBlock {
    return new RegisterBlock(this.#target, this.bytes, this.#missing, singles);
  }

  /** True when every byte is available. */
  get complete(): boolean {
    return this.#missing === undefined;
  }

  /** The bytes as `G` takes them. */
  get hex(): string {
    const text = bytesToHex(this.bytes);
    if (this.#missing === undefined) return text;
    return Array.from(this.#missing, (gap, index) => (gap === 0 ? text.slice(2 * index, 2 * index + 2) : 'xx')).join(
      '',
    );
  }
}

/** `g`. */
export class BlockRequest extends Request<RegisterBlock> {
  readonly #target: TargetDescription;
  readonly #read: (block: RegisterBlock) => void;

  /** `read` is given the block, so that `G` can be built from it. */
  constructor(packet: string, target: TargetDescription, read: (block: RegisterBlock) => void) {
    super(packet, new RegisterBlock(target, new Uint8Array(0)));
    this.#target = target;
    this.#read = read;
  }

  protected override decode(bytes: Uint8Array, start: number, end: number): RegisterBlock {
    // The answer to another packet has another length. An answer whose length changes is no answer to g.
    if (end - start !== 2 * this.#target.blockLength) throw this.unexpected(bytes, start, end);
    const into = new Uint8Array(this.#target.blockLength);
    let missing: Uint8Array | undefined;
    if (!decodeHex(bytes, start, end, into, 0)) missing = this.#withGaps(bytes, start, end, into);
    const block = new RegisterBlock(this.#target, into, missing);
    this.#read(block);
    return block;
  }

  #withGaps(bytes: Uint8Array, start: number, end: number, into: Uint8Array): Uint8Array {
    const missing = new Uint8Array(into.length);
    for (let index = 0; index < into.length; index++) {
      const at = start + 2 * index;
      if (bytes[at] === 0x78 && bytes[at + 1] === 0x78) missing[index] = 1;
      else if (!decodeHex(bytes, at, at + 2, into, index)) throw this.unexpected(bytes, start, end);
    }
    return missing;
  }
}

/** A block of `g`, if there is one, and of registers read one by one. */
export function assembledBlock(
  target: TargetDescription,
  block: Reply<RegisterBlock> | undefined,
  singles: ReadonlyMap<string, Reply<bigint | undefined>>,
): Reply<RegisterBlock> {
  let made: RegisterBlock | undefined;
  return new Derived([...(block ? [block] : []), ...singles.values()], () => {
    made ??= (block?.value ?? new RegisterBlock(target, new Uint8Array(0))).with(
      new Map([...singles].map(([name, request]) => [name, request.value])),
    );
    return made;
  });
}

/** One register of a stopped hart; undefined if the stub does not give it. */
export async function registerOf(session: Session, name: string, hart?: string): Promise<bigint | undefined> {
  const batch = session.batch(hart);
  const reply = batch.readRegister(name);
  await batch.send();
  return reply.value;
}

/** All registers of a stopped hart, or what a stub gives at once and those of `names`. */
export async function registersOf(session: Session, hart?: string, names?: readonly string[]): Promise<RegisterBlock> {
  const batch = session.batch(hart);
  const reply = batch.readRegisters(names);
  await batch.send();
  return reply.value;
}

/** Writes one register of a stopped hart; false if the stub refuses it. */
export async function setRegister(session: Session, name: string, value: bigint, hart?: string): Promise<boolean> {
  const batch = session.batch(hart);
  const reply = batch.writeRegister(name, value);
  await batch.send();
  return reply.value;
}

/**
 * The registers of an architecture, as far as they are known without a stub. The protocol itself has none: the caller
 * gives them.
 */
export interface KnownRegisters {
  readonly name: string;
  /** The names in stubs' target.xml `<architecture>`. */
  readonly gdbNames: readonly string[];
  /** The program counter. */
  readonly pc: string;
  /** The registers in the answer to `g` of a stub that describes none, numbered from 0; undefined where not known. */
  readonly layout: readonly { readonly name: string; readonly bits: number }[] | undefined;
  /** Names that stubs and assemblers use for the same register, one list each. */
  readonly aliases: readonly (readonly string[])[];
  /** Bits of a pointer that say where it leads; all if nothing is said. */
  readonly pointerBits?: number | undefined;
  /** The names of signals by the numbers of its processes' system, without SIG. */
  readonly signals?: readonly string[] | undefined;
}

/** The architecture that a stub names, else the expected one. */
export function knownRegisters(
  all: readonly KnownRegisters[],
  said: string | undefined,
  expected: string | undefined,
): KnownRegisters | undefined {
  const found = said === undefined ? undefined : all.find(({ gdbNames }) => gdbNames.includes(said));
  return found ?? all.find(({ name }) => name === expected);
}

/** The registers of a stub that does not describe them. */
export function defaultRegisters({ layout }: KnownRegisters): RegisterSpec[] | undefined {
  return layout?.map((register, number) => ({ ...register, number }));
}
