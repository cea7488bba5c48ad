// The board that OpenOCD's remote_bitbang adapter talks to: a byte an edge (jtag/drivers/remote_bitbang.c and the manual's
// "Interface Driver: remote_bitbang").
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { Bus } from './bus.js';
import { DebugModule } from './debug-module.js';
import { Hart } from './hart.js';
import { IDCODE, Tap } from './tap.js';

export { IDCODE };

/** Where the code in ROM lies. */
export const ROM = 0x2000_0000;
export const TRIGGERS = 2;

/** Instructions in one turn of the event loop, and right after a resume: enough for most runs to a breakpoint. */
const SLICE = 2000;

export class Board {
  readonly hart: Hart;
  /** Resolves when the program has ended itself, with its status. */
  readonly ended: Promise<number>;
  /** How long each piece of what the adapter sends waits for its answer, in ms: a slow wire. */
  latencyMs = 0;
  readonly #tap: Tap;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #ticking = false;
  #end: (status: number) => void = () => {};
  #fail: (error: unknown) => void = () => {};
  #tck = 0;

  constructor(elf: string) {
    const bus = new Bus(ROM);
    const { entry, segments } = readElf(elf);
    for (const { address, bytes } of segments) {
      if (!bus.load(address, bytes))
        throw new Error(`${elf} has a segment at 0x${address.toString(16)}, where the board has nothing`);
    }
    this.hart = new Hart(bus, entry, TRIGGERS);
    this.#tap = new Tap(new DebugModule(this.hart));
    this.ended = new Promise((end, fail) => {
      this.#end = end;
      this.#fail = fail;
    });
    this.#server = createServer((socket) => {
      this.#sockets.add(socket.setNoDelay());
      socket.on('data', (bytes) => {
        if (this.latencyMs === 0) this.#hear(socket, bytes);
        else setTimeout(() => this.#hear(socket, bytes), this.latencyMs);
      });
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  get output(): string {
    return this.hart.bus.output;
  }

  /** Listens at a path. */
  listen(path: string): Promise<void> {
    return new Promise((done) => this.#server.listen(path, done));
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    this.hart.halted = true;
  }

  #hear(socket: Socket, bytes: Uint8Array): void {
    const samples = new Uint8Array(bytes.length);
    let sampled = 0;
    try {
      for (const byte of bytes) {
        if (byte === 0x52) samples[sampled++] = 0x30 | this.#tap.tdo;
        else if (byte >= 0x30 && byte <= 0x37) this.#edge(byte & 7);
        // 'r' to 'u': both resets, TRST, SRST, none.
        else if (byte === 0x74 || byte === 0x75) this.#tap.reset();
        else if (byte === 0x51) socket.end();
      }
    } catch (error) {
      this.#fail(error);
      socket.destroy();
    }
    if (sampled > 0) socket.write(samples.subarray(0, sampled));
    this.#tick();
  }

  /** Bit 2 is TCK, bit 1 TMS, bit 0 TDI. */
  #edge(lines: number): void {
    const tck = lines >> 2;
    if (tck === 1 && this.#tck === 0) this.#tap.clock((lines >> 1) & 1, lines & 1);
    this.#tck = tck;
  }

  /** Lets the hart run while nobody talks to it. */
  #tick(): void {
    if (this.#ticking || this.hart.halted) return;
    try {
      this.hart.run(SLICE);
    } catch (error) {
      this.#fail(error);
      return;
    }
    const { status } = this.hart.bus;
    if (status !== undefined) {
      this.#end(status);
    } else if (!this.hart.halted) {
      this.#ticking = true;
      setImmediate(() => {
        this.#ticking = false;
        this.#tick();
      });
    }
  }
}

/** The loadable segments of a program, as readelf and objcopy see them. */
function readElf(path: string): { entry: bigint; segments: { address: number; bytes: Uint8Array }[] } {
  const text = execFileSync('riscv64-linux-gnu-readelf', ['-hlW', path], { encoding: 'utf8' });
  const entry = BigInt(/Entry point address:\s+(0x[0-9a-f]+)/.exec(text)?.[1] ?? 0);
  const file = readFileSync(path);
  const segments = [...text.matchAll(/^ +LOAD +(0x\w+) +(0x\w+) +0x\w+ +(0x\w+)/gm)].map(
    ([, offset, address, size]) => ({
      address: Number(address),
      bytes: new Uint8Array(file.subarray(Number(offset), Number(offset) + Number(size))),
    }),
  );
  return { entry, segments };
}
