import { Buffer } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A packet with its sum, from first principles: none of the client's own code. */
export function frame(data: string): string {
  let sum = 0;
  for (const byte of Buffer.from(data, 'latin1')) sum = (sum + byte) % 256;
  return `$${data}#${sum.toString(16).padStart(2, '0')}`;
}

/** Answers by packet; a function may send by itself and return undefined. */
export type Script = Record<string, string | ((packet: string, stub: FakeStub) => string | undefined)>;

/** What a small RISC-V stub answers to a handshake; 33 registers, x1 = 0x8020_0000 and so on. */
export const riscv: Script = {
  'qSupported*': 'PacketSize=1000;qXfer:features:read+;vContSupported+;multiprocess+',
  '?': 'T05thread:p01.01;',
  'qXfer:features:read:target.xml:*': `l<target><architecture>riscv:rv64</architecture><feature name="org.gnu.gdb.riscv.cpu">${[
    'zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 pc'.split(' '),
  ]
    .flat()
    .map((name) => `<reg name="${name}" bitsize="64"/>`)
    .join('')}</feature><feature name="x"><reg name="satp" bitsize="64" regnum="450"/></feature></target>`,
  qfThreadInfo: 'mp01.01',
  qsThreadInfo: 'l',
  'vCont?': 'vCont;c;C;s;S',
  'qAttached*': '1',
  g: Array.from({ length: 33 }, (_, number) => `${number.toString(16).padStart(2, '0')}00000000000000`).join(''),
  p20: '2000000000000000',
  'qqemu.sstepbits': 'ENABLE=1,NOIRQ=2,NOTIMER=4',
  'Hg*': 'OK',
  'D*': 'OK',
};

/**
 * A stub on a unix socket that answers from a script. Keys are packets, or their beginning with `*` behind it; what is in
 * none has the empty answer. It acknowledges as a stub without QStartNoAckMode must, and sends nothing else by itself.
 */
export class FakeStub implements AsyncDisposable {
  readonly path: string;
  /** All that came, in order: `+`, `-`, `\x03`, packets without frame. */
  readonly heard: string[] = [];
  /** Each write of the client that arrived as one chunk, raw. */
  readonly chunks: string[] = [];
  script: Script;
  acks = true;
  /** Damaged packets are asked for again, instead of being a failure of the test. */
  noisy = false;
  /** Set by a script that wants to be heard only. */
  silent = false;
  #server: net.Server;
  #socket: net.Socket | undefined;
  #buffer = '';
  #watchers: { readonly text: string; readonly resolve: () => void }[] = [];

  private constructor(server: net.Server, path: string, script: Script) {
    this.#server = server;
    this.path = path;
    this.script = script;
  }

  static async start(...scripts: Script[]): Promise<FakeStub> {
    const path = join(tmpdir(), `fake-stub-${randomBytes(6).toString('hex')}`);
    const server = net.createServer();
    const stub = new FakeStub(server, path, Object.assign({}, ...scripts) as Script);
    server.on('connection', (socket) => stub.#serve(socket));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    return stub;
  }

  /** Sends bytes as they are. */
  raw(text: string): void {
    this.#socket?.write(Buffer.from(text, 'latin1'));
  }

  reply(data: string): void {
    this.raw(frame(data));
  }

  hangUp(): void {
    this.#socket?.destroy();
  }

  /** Resolves once this was heard. */
  async hears(text: string): Promise<void> {
    if (this.heard.includes(text)) return;
    await new Promise<void>((resolve) => this.#watchers.push({ text, resolve }));
  }

  /** Packets heard, without acknowledgements. */
  get packets(): string[] {
    return this.heard.filter((each) => each !== '+' && each !== '-');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket?.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    rmSync(this.path, { force: true });
  }

  #serve(socket: net.Socket): void {
    this.#socket = socket;
    this.#buffer = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      this.chunks.push(chunk.toString('latin1'));
      this.#buffer += chunk.toString('latin1');
      this.#parse();
    });
  }

  #parse(): void {
    for (;;) {
      const first = this.#buffer[0];
      if (first === undefined) return;
      if (first !== '$') {
        this.#buffer = this.#buffer.slice(1);
        this.#hear(first);
        if (first === '\x03') this.#answer('\x03');
        continue;
      }
      const hash = this.#buffer.indexOf('#');
      if (hash < 0 || this.#buffer.length < hash + 3) return;
      const packet = this.#buffer.slice(1, hash);
      const sumIsRight = frame(packet) === this.#buffer.slice(0, hash + 3);
      if (!sumIsRight && !this.noisy) throw new Error(`the client's sum is wrong: ${packet}`);
      this.#buffer = this.#buffer.slice(hash + 3);
      if (!sumIsRight) {
        this.raw('-');
        continue;
      }
      this.#hear(packet);
      if (this.silent) continue;
      if (this.acks) this.raw('+');
      this.#answer(packet);
      if (packet === 'QStartNoAckMode' && this.script.QStartNoAckMode === 'OK') this.acks = false;
    }
  }

  #hear(text: string): void {
    this.heard.push(text);
    this.#watchers = this.#watchers.filter((watcher) => {
      if (watcher.text === text) watcher.resolve();
      return watcher.text !== text;
    });
  }

  #answer(packet: string): void {
    const key =
      packet in this.script
        ? packet
        : Object.keys(this.script).find((each) => each.endsWith('*') && packet.startsWith(each.slice(0, -1)));
    const answer = key === undefined ? (packet === '\x03' ? undefined : '') : this.script[key];
    const text = typeof answer === 'function' ? answer(packet, this) : answer;
    if (text !== undefined) this.reply(text);
  }
}
