import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPacket, StubChild, writePacket } from './stub-child.js';

export type Registers = Readonly<Record<string, bigint>>;

/** A machine of QEMU without firmware, and binutils for it. */
export interface MachineTarget {
  readonly program: string;
  readonly options: string;
  /** The first registers of its `g` packet, of eight bytes each; `flags` behind them has four. */
  readonly order: readonly string[];
  readonly flags?: string;
  /** binutils' prefix, and options of its assembler. */
  readonly binutils: string;
  readonly assembler: readonly string[];
  /** Before each text. */
  readonly directives?: string;
}

/**
 * Harts of a machine, stopped, without firmware: memory and registers are written, code runs from there
 * to an address.
 */
export class BareMachine implements AsyncDisposable {
  readonly #stub: StubChild;
  readonly #target: MachineTarget;
  /** By hart, what comes after these registers in a `g` packet: written back as it was. */
  readonly #rest = new Map<number, string>();

  protected constructor(stub: StubChild, target: MachineTarget) {
    this.#stub = stub;
    this.#target = target;
  }

  protected static stubOf({ program, options }: MachineTarget, harts: number): Promise<StubChild> {
    const args = `${options} -smp ${harts} -display none -serial none -monitor none -S -gdb stdio`;
    return StubChild.start(program, args.split(' '));
  }

  async write(address: bigint, bytes: Uint8Array): Promise<void> {
    const packets: string[] = [];
    for (let at = 0; at < bytes.length; at += 1024)
      packets.push(writePacket(address + BigInt(at), bytes.subarray(at, at + 1024)));
    await this.#ok(packets);
  }

  async read(address: bigint, length: number): Promise<Uint8Array> {
    const packets: string[] = [];
    for (let at = 0; at < length; at += 1024)
      packets.push(readPacket(address + BigInt(at), Math.min(1024, length - at)));
    return new Uint8Array(Buffer.from((await this.#stub.exchange(packets)).join(''), 'hex'));
  }

  async word(address: bigint): Promise<bigint> {
    return Buffer.from(await this.read(address, 8)).readBigUInt64LE();
  }

  async writeWord(address: bigint, value: bigint): Promise<void> {
    await this.write(address, words(value));
  }

  /** `hart` counts from 1, as in the protocol. */
  async registers(hart = 1): Promise<Registers> {
    const [, all = ''] = await this.#stub.exchange([`Hg${hart}`, 'g']);
    const bytes = Buffer.from(all, 'hex');
    const { order, flags } = this.#target;
    const size = 8 * order.length;
    this.#rest.set(hart, all.slice(2 * (size + (flags === undefined ? 0 : 4))));
    const found = order.map((name, index) => [name, bytes.readBigUInt64LE(8 * index)] as const);
    if (flags !== undefined) found.push([flags, BigInt(bytes.readUInt32LE(size))]);
    return Object.fromEntries(found);
  }

  async setRegisters(registers: Registers, hart = 1): Promise<void> {
    if (!this.#rest.has(hart)) await this.registers(hart);
    const { order, flags } = this.#target;
    const last = flags === undefined ? [] : words(registers[flags] ?? 0n).subarray(0, 4);
    const bytes = Buffer.from([...words(...order.map((name) => registers[name] ?? 0n)), ...last]);
    await this.#ok([`Hg${hart}`, `G${bytes.toString('hex')}${this.#rest.get(hart)}`]);
  }

  /** Runs all harts until one stands at one of these addresses; its number. */
  async run(stops: readonly bigint[]): Promise<number> {
    const places = stops.map((stop) => `0,${stop.toString(16)},4`);
    const replies = await this.#stub.exchange([...places.map((place) => `Z${place}`), 'vCont;c']);
    await this.#ok(places.map((place) => `z${place}`));
    const stopped = replies.at(-1) ?? '';
    const hart = /^T05.*thread:p?(?:[0-9a-f]+\.)?([0-9a-f]+);/.exec(stopped)?.[1];
    if (hart === undefined) throw new Error(`No stop: ${stopped}`);
    return Number.parseInt(hart, 16);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stub[Symbol.asyncDispose]();
  }

  async #ok(packets: readonly string[]): Promise<void> {
    const replies = await this.#stub.exchange(packets);
    const index = replies.findIndex((reply) => reply !== 'OK');
    if (index >= 0) throw new Error(`${packets[index]}: ${replies[index]}`);
  }
}

/** 64-bit words as they lie in memory. */
export function words(...values: readonly bigint[]): Uint8Array {
  return new Uint8Array(BigUint64Array.from(values, (value) => BigInt.asUintN(64, value)).buffer);
}

/** Assembly text linked to an address, with symbols of other places: its code, by binutils. */
export function assembleFor(
  { binutils, assembler, directives = '' }: MachineTarget,
  text: string,
  at: bigint,
  symbols: Readonly<Record<string, bigint>> = {},
): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-as-'));
  try {
    const path = (name: string): string => join(folder, name);
    writeFileSync(path('code.s'), `${directives}.globl _start\n_start:\n${text}\n`);
    execFileSync(`${binutils}-as`, [...assembler, '-o', path('code.o'), path('code.s')]);
    const places = { '.text': at, ...symbols };
    const options = Object.entries(places).map(([name, address]) =>
      name === '.text' ? `-Ttext=0x${address.toString(16)}` : `--defsym=${name}=${address}`,
    );
    execFileSync(`${binutils}-ld`, [...options, '-o', path('code.elf'), path('code.o')]);
    execFileSync(`${binutils}-objcopy`, ['-O', 'binary', '-j', '.text', path('code.elf'), path('code.bin')]);
    return new Uint8Array(readFileSync(path('code.bin')));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
