import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';

/**
 * A stub that speaks the remote protocol over its standard streams, without acknowledgements: a stray byte would stop a running QEMU, which
 * does not miss them, and gdbserver is told not to wait for them.
 */
export class StubChild implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #replies: string[] = [];
  #waiting: { count: number; resolve: (replies: string[]) => void; reject: (error: Error) => void } | undefined;
  #input = '';
  #errors = '';

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stdout.setEncoding('latin1').on('data', (text: string) => this.#receive(text));
    child.stderr.setEncoding('latin1').on('data', (text: string) => {
      this.#errors += text;
    });
    child.on('close', () => this.#waiting?.reject(new Error(`The stub is gone: ${this.#errors}`)));
  }

  static async start(command: string, args: readonly string[]): Promise<StubChild> {
    const stub = new StubChild(spawn(command, args, { stdio: 'pipe' }));
    for (const packet of ['qSupported:xmlRegisters=i386', 'QStartNoAckMode']) {
      await stub.exchange([packet]);
      stub.#child.stdin.write('+');
    }
    return stub;
  }

  /** Sends all packets at once; the answers to them. */
  exchange(packets: readonly string[]): Promise<string[]> {
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
      this.#waiting = { count: packets.length, resolve: done, reject };
      this.#child.stdin.write(packets.map(frame).join(''), 'latin1');
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.kill('SIGTERM');
    const hard = setTimeout(() => this.#child.kill('SIGKILL'), 2_000);
    await closed;
    clearTimeout(hard);
  }

  #receive(text: string): void {
    this.#input += text;
    for (;;) {
      const start = this.#input.indexOf('$');
      const end = this.#input.indexOf('#', start);
      if (start < 0 || end < 0 || this.#input.length < end + 3) break;
      this.#replies.push(expandRuns(this.#input.slice(start + 1, end)));
      this.#input = this.#input.slice(end + 3);
    }
    const waiting = this.#waiting;
    if (waiting === undefined || this.#replies.length < waiting.count) return;
    this.#waiting = undefined;
    waiting.resolve(this.#replies.splice(0, waiting.count));
  }
}

export function readPacket(address: bigint, length: number): string {
  return `m${address.toString(16)},${length.toString(16)}`;
}

export function writePacket(address: bigint, bytes: Uint8Array): string {
  return `M${address.toString(16)},${bytes.length.toString(16)}:${Buffer.from(bytes).toString('hex')}`;
}

function frame(packet: string): string {
  let sum = 0;
  for (let index = 0; index < packet.length; index++) sum = (sum + packet.charCodeAt(index)) & 0xff;
  return `$${packet}#${sum.toString(16).padStart(2, '0')}`;
}

/** `X*n`: X, and n - 29 more of it. */
function expandRuns(text: string): string {
  return text.replace(/(.)\*(.)/gs, (_, what: string, count: string) => what.repeat(count.charCodeAt(0) - 28));
}
