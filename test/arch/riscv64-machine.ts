import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The order of QEMU's `g` packet: x0 to x31 by the names of its riscv-64bit-cpu.xml, then pc. */
export const order =
  'zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 pc'.split(' ');

export type Registers = Readonly<Record<string, bigint>>;

/**
 * Harts of QEMU's `virt` machine, stopped, with 64 MiB of RAM at 0x8000_0000 and no firmware: memory and registers are written, code runs
 * from there to an address. Speaks the remote protocol over QEMU's standard streams, where nothing needs an acknowledgement.
 */
export class Machine implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #replies: string[] = [];
  #wanted: { count: number; resolve: (replies: string[]) => void; reject: (error: Error) => void } | undefined;
  #input = '';
  #errors = '';
  /** By hart, what comes after the integer registers in a `g` packet: written back as it was. */
  readonly #rest = new Map<number, string>();

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stdout.setEncoding('latin1').on('data', (text: string) => this.#receive(text));
    child.stderr.setEncoding('latin1').on('data', (text: string) => {
      this.#errors += text;
    });
    child.on('close', () => this.#wanted?.reject(new Error(`QEMU is gone: ${this.#errors}`)));
  }

  static async start(harts = 1): Promise<Machine> {
    const args = `-M virt -m 64M -smp ${harts} -bios none -display none -serial none -monitor none -S -gdb stdio`.split(
      ' ',
    );
    const machine = new Machine(spawn('qemu-system-riscv64', args, { stdio: 'pipe' }));
    for (const packet of ['qSupported:xmlRegisters=i386', 'QStartNoAckMode']) {
      await machine.#exchange([packet]);
      machine.#child.stdin.write('+');
    }
    return machine;
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
      packets.push(`m${(address + BigInt(at)).toString(16)},${Math.min(1024, length - at).toString(16)}`);
    return new Uint8Array(Buffer.from((await this.#exchange(packets)).join(''), 'hex'));
  }

  async word(address: bigint): Promise<bigint> {
    return Buffer.from(await this.read(address, 8)).readBigUInt64LE();
  }

  async writeWord(address: bigint, value: bigint): Promise<void> {
    await this.write(address, words(value));
  }

  /** `hart` counts from 1, as in the protocol. */
  async registers(hart = 1): Promise<Registers> {
    const [, all = ''] = await this.#exchange([`Hg${hart}`, 'g']);
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
    const replies = await this.#exchange([...places.map((place) => `Z${place}`), 'vCont;c']);
    await this.#ok(places.map((place) => `z${place}`));
    const stopped = replies.at(-1) ?? '';
    const hart = /^T05.*thread:p?(?:[0-9a-f]+\.)?([0-9a-f]+);/.exec(stopped)?.[1];
    if (hart === undefined) throw new Error(`No stop: ${stopped}`);
    return Number.parseInt(hart, 16);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.kill('SIGKILL');
    await closed;
  }

  async #ok(packets: readonly string[]): Promise<void> {
    const replies = await this.#exchange(packets);
    const index = replies.findIndex((reply) => reply !== 'OK');
    if (index >= 0) throw new Error(`${packets[index]}: ${replies[index]}`);
  }

  #exchange(packets: readonly string[]): Promise<string[]> {
    if (packets.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#child.kill('SIGKILL');
        reject(new Error(`No answer to ${packets.at(-1)}`));
      }, 200_000);
      const done = (replies: string[]): void => {
        clearTimeout(late);
        resolve(replies);
      };
      this.#wanted = { count: packets.length, resolve: done, reject };
      this.#child.stdin.write(packets.map(frame).join(''), 'latin1');
    });
  }

  #receive(text: string): void {
    this.#input += text;
    for (;;) {
      const start = this.#input.indexOf('$');
      const end = this.#input.indexOf('#', start);
      if (start < 0 || end < 0 || this.#input.length < end + 3) break;
      this.#replies.push(this.#input.slice(start + 1, end));
      this.#input = this.#input.slice(end + 3);
    }
    const wanted = this.#wanted;
    if (wanted === undefined || this.#replies.length < wanted.count) return;
    this.#wanted = undefined;
    wanted.resolve(this.#replies.splice(0, wanted.count));
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

function writePacket(address: bigint, bytes: Uint8Array): string {
  return `M${address.toString(16)},${bytes.length.toString(16)}:${Buffer.from(bytes).toString('hex')}`;
}

function frame(packet: string): string {
  let sum = 0;
  for (let index = 0; index < packet.length; index++) sum = (sum + packet.charCodeAt(index)) & 0xff;
  return `$${packet}#${sum.toString(16).padStart(2, '0')}`;
}
