import { Buffer } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Direction = 'to-stub' | 'to-client';

/** What is done to the bytes of one direction. Rates are of bytes, by a generator whose sequence its seed decides. */
export interface Faults {
  /** Bytes of this direction that pass before anything is done: the handshake, say. */
  readonly after?: number;
  readonly drop?: number;
  readonly duplicate?: number;
  /** One bit of the byte is turned over. */
  readonly flip?: number;
  /** Every chunk is cut into pieces of one to so many bytes, each a write of its own. */
  readonly split?: number;
  /** Every chunk is held for so long, in ms. */
  readonly delay?: number;
  /** Sees each chunk as latin-1 text, with all that clients have sent; what it gives goes on. */
  readonly edit?: (text: string, proxy: FaultProxy) => string;
}

/** A generator of numbers in [0, 1) whose sequence its seed decides (mulberry32, Tommy Ettinger, public domain). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Stands between a client, on a unix socket, and the stub at `target`, a unix socket or an address and a port, and does to the bytes what it was told. */
export class FaultProxy implements AsyncDisposable {
  readonly path = join(tmpdir(), `fault-proxy-${randomBytes(6).toString('hex')}`);
  /** Changes may be made at any time. */
  readonly faults: Record<Direction, Faults>;
  /** What clients have sent, before anything was done to it. What stubs answer may be more than a string holds: RAM. */
  sent = '';
  /** Bytes dropped, added, changed. */
  harm = 0;
  connections = 0;
  /** Where the next connection leads. */
  target: string;
  readonly #server: net.Server;
  readonly #counts: Record<Direction, number> = { 'to-stub': 0, 'to-client': 0 };
  readonly #random: Record<Direction, () => number>;
  #client: net.Socket | undefined;
  #stub: net.Socket | undefined;
  #deaf = false;

  private constructor(target: string, faults: Partial<Record<Direction, Faults>>) {
    this.target = target;
    this.faults = { 'to-stub': faults['to-stub'] ?? {}, 'to-client': faults['to-client'] ?? {} };
    this.#random = {
      'to-stub': random(1),
      'to-client': random(2),
    };
    this.#server = net.createServer((client) => this.#serve(client));
  }

  static async start(target: string, faults: Partial<Record<Direction, Faults>> = {}): Promise<FaultProxy> {
    const proxy = new FaultProxy(target, faults);
    await new Promise<void>((resolve) => proxy.#server.listen(proxy.path, resolve));
    return proxy;
  }

  /** Says something to the client that the stub never said. */
  say(text: string): void {
    this.#client?.write(Buffer.from(text, 'latin1'));
  }

  /** Starts the sequence of chances of one direction anew. */
  reseed(direction: Direction, seed: number): void {
    this.#random[direction] = random(seed);
  }

  /** From now on nothing passes, either way, and nobody hears of it. */
  swallow(): void {
    this.#deaf = true;
  }

  /** Breaks the connection; the next one is served as before. */
  cut(): void {
    this.#client?.destroy();
    this.#stub?.destroy();
  }

  /** Ends one direction: the client's reading side, or the stub's. */
  halfClose(direction: Direction): void {
    (direction === 'to-client' ? this.#client : this.#stub)?.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    rmSync(this.path, { force: true });
  }

  #serve(client: net.Socket): void {
    this.connections++;
    const [, host, port] = /^([\d.]+):(\d+)$/.exec(this.target) ?? [];
    const where = host === undefined ? { path: this.target } : { host, port: Number(port) };
    const stub = net.connect({ ...where, allowHalfOpen: true });
    this.#client = client;
    this.#stub = stub;
    this.#join(client, stub, 'to-stub');
    this.#join(stub, client, 'to-client');
  }

  #join(from: net.Socket, to: net.Socket, direction: Direction): void {
    let pending: Promise<void> | undefined;
    from.on('error', () => to.destroy());
    from.on('end', () => to.end());
    from.on('close', () => to.destroy());
    from.on('data', (chunk) => {
      if (this.#deaf) return;
      const { delay } = this.faults[direction];
      const pieces = this.#harmed(chunk.toString('latin1'), direction);
      if (pending === undefined && delay === undefined && pieces.length < 2) {
        for (const piece of pieces) to.write(Buffer.from(piece, 'latin1'));
        return;
      }
      // From here on everything keeps its place in the line.
      pending = (pending ?? Promise.resolve()).then(async () => {
        if (delay !== undefined) await new Promise((resolve) => setTimeout(resolve, delay));
        for (const piece of pieces) {
          if (!to.destroyed) to.write(Buffer.from(piece, 'latin1'));
          await new Promise((resolve) => setImmediate(resolve));
        }
      });
    });
  }

  #harmed(text: string, direction: Direction): string[] {
    const { drop = 0, duplicate = 0, flip = 0, split, edit } = this.faults[direction];
    if (direction === 'to-stub') this.sent += text;
    const next = this.#random[direction];
    const edited = edit === undefined ? text : edit(text, this);
    const out = drop + duplicate + flip > 0 ? this.#hurt(edited, direction) : edited;
    if (split === undefined) return out === '' ? [] : [out];
    const pieces: string[] = [];
    for (let at = 0; at < out.length; ) {
      const length = 1 + Math.floor(next() * split);
      pieces.push(out.slice(at, at + length));
      at += length;
    }
    return pieces;
  }

  #hurt(text: string, direction: Direction): string {
    const { after = 0, drop = 0, duplicate = 0, flip = 0 } = this.faults[direction];
    const next = this.#random[direction];
    let out = '';
    for (const byte of text) {
      const chance = ++this.#counts[direction] > after ? next() : 1;
      if (chance < drop) this.harm++;
      else if (chance < drop + duplicate) {
        out += byte + byte;
        this.harm++;
      } else if (chance < drop + duplicate + flip) {
        out += String.fromCharCode(byte.charCodeAt(0) ^ (1 << Math.floor(next() * 8)));
        this.harm++;
      } else out += byte;
    }
    return out;
  }
}
