import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPacket, StubChild, writePacket } from './stub-child.js';

/** The order of QEMU's `g` packet: x0 to x31 by the names of its riscv-64bit-cpu.xml, then pc. */
export const order =
  'zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 pc'.split(' ');

export type Registers = Readonly<Record<string, bigint>>;

/**
 * Harts of QEMU's `virt` machine, stopped, with 64 MiB of RAM at 0x8000_0000 and no firmware: memory and registers are written, code runs
 * from there to an address.
 */
export class Machine implements AsyncDisposable {
  readonly #stub: StubChild;
  /** By hart, what comes after the integer registers in a `g` packet: written back as it was. */
  readonly #rest = new Map<number, string>();

  private constructor(stub: StubChild) {
    this.#stub = stub;
  }

  static async start(harts = 1): Promise<Machine> {
    const args = `-M virt -m 64M -smp ${harts} -bios none -display none -serial none -monitor none -S -gdb stdio`;
    return new Machine(await StubChild.start('qemu-system-riscv64', args.split(' ')));
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
    this.#rest.set(hart, all.slice(16 * order.length));
    return Object.fromEntries(order.map((name, index) => [name, bytes.readBigUInt64LE(8 * index)]));
  }

  async setRegisters(registers: Registers, hart = 1): Promise<void> {
    if (!this.#rest.has(hart)) await this.registers(hart);
    const text = Buffer.from(words(...order.map((name) => registers[name] ?? 0n))).toString('hex');
    await this.#ok([`Hg${hart}`, `G${text}${this.#rest.get(hart)}`]);
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
export function assemble(text: string, at: bigint, symbols: Readonly<Record<string, bigint>> = {}): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-as-'));
  try {
    const path = (name: string): string => join(folder, name);
    writeFileSync(path('code.s'), `.option norelax\n.globl _start\n_start:\n${text}\n`);
    execFileSync('riscv64-linux-gnu-as', ['-march=rv64gc', '-o', path('code.o'), path('code.s')]);
    const places = { '.text': at, ...symbols };
    const options = Object.entries(places).map(([name, address]) =>
      name === '.text' ? `-Ttext=0x${address.toString(16)}` : `--defsym=${name}=${address}`,
    );
    execFileSync('riscv64-linux-gnu-ld', [...options, '-o', path('code.elf'), path('code.o')]);
    execFileSync('riscv64-linux-gnu-objcopy', ['-O', 'binary', '-j', '.text', path('code.elf'), path('code.bin')]);
    return new Uint8Array(readFileSync(path('code.bin')));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
