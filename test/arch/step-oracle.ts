import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';

/**
 * What an instruction really does: puts registers and memory into a target behind a stub, steps once, and reads back. Speaks just enough
 * of the remote protocol over a child's standard streams, without acknowledgements: a stray byte would stop a running QEMU, which does
 * not miss them, and gdbserver is told not to wait for them.
 */
export interface Case {
  /** By register, in the order of the stub's `g` packet. */
  readonly registers: readonly bigint[];
  /** Written before the step, the instruction's own bytes among them. */
  readonly memory: readonly { readonly address: bigint; readonly bytes: Uint8Array }[];
  /** Read after it. */
  readonly watch: { readonly address: bigint; readonly length: number };
}

export interface Outcome {
  readonly registers: readonly bigint[];
  readonly watched: Uint8Array | undefined;
}

export class StepOracle implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  /** Bytes of each register at the start of the `g` packet. */
  readonly #sizes: readonly number[];
  readonly #replies: string[] = [];
  #waiting: { count: number; resolve: (replies: string[]) => void; reject: (error: Error) => void } | undefined;
  #input = '';
  #errors = '';
  /** What comes after the registers that cases set: written back as it was. */
  #rest = '';

  private constructor(child: ChildProcessWithoutNullStreams, sizes: readonly number[]) {
    this.#child = child;
    this.#sizes = sizes;
    child.stdout.setEncoding('latin1').on('data', (text: string) => this.#receive(text));
    child.stderr.setEncoding('latin1').on('data', (text: string) => {
      this.#errors += text;
    });
    child.on('close', () => this.#waiting?.reject(new Error(`The stub is gone: ${this.#errors}`)));
  }

  /** Starts the stub; with `until` its program runs to that address first. */
  static async start(
    command: string,
    args: readonly string[],
    sizes: readonly number[],
    until?: bigint,
  ): Promise<StepOracle> {
    const oracle = new StepOracle(spawn(command, args, { stdio: 'pipe' }), sizes);
    for (const packet of ['qSupported:xmlRegisters=i386', 'QStartNoAckMode']) {
      await oracle.#exchange([packet]);
      oracle.#child.stdin.write('+');
    }
    // One step first: out of whatever the kernel was doing for the program when it stopped.
    await oracle.#exchange(['?']);
    await oracle.#exchange(['vCont;s']);
    if (until !== undefined) {
      const place = `0,${until.toString(16)},1`;
      await oracle.#exchange([`Z${place}`, 'vCont;c']);
      await oracle.#exchange([`z${place}`]);
    }
    const [all = ''] = await oracle.#exchange(['g']);
    oracle.#rest = all.slice(2 * sizes.reduce((sum, size) => sum + size, 0));
    return oracle;
  }

  /** Runs all cases, one step each; the reads of one go out in the same write as the next one's set-up. */
  async run(cases: readonly Case[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    let reads: string[] = [];
    for (const [index, { registers, memory, watch }] of [...cases, ...ending].entries()) {
      const writes = memory.map(
        ({ address, bytes }) => `M${address.toString(16)},${bytes.length.toString(16)}:${toHex(bytes)}`,
      );
      const resume = index < cases.length ? [...writes, `G${this.#encode(registers)}`, 'vCont;s'] : [];
      const replies = await this.#exchange([...reads, ...resume]);
      if (reads.length > 0) outcomes.push(this.#outcome(replies[0] ?? '', replies[1] ?? ''));
      const set = replies.slice(reads.length);
      if (set.slice(0, -1).some((reply) => reply !== 'OK'))
        throw new Error(`Case ${index} was not set up: ${set.join(' ')}`);
      if (resume.length > 0 && !/^T05/.test(set.at(-1) ?? ''))
        throw new Error(`Case ${index} did not step: ${set.at(-1)}`);
      reads = ['g', `m${watch.address.toString(16)},${watch.length.toString(16)}`];
    }
    return outcomes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.kill('SIGTERM');
    const hard = setTimeout(() => this.#child.kill('SIGKILL'), 2_000);
    await closed;
    clearTimeout(hard);
  }

  #encode(registers: readonly bigint[]): string {
    let text = '';
    for (const [index, size] of this.#sizes.entries()) {
      for (let shift = 0; shift < 8 * size; shift += 8) {
        text += Number(((registers[index] ?? 0n) >> BigInt(shift)) & 0xffn)
          .toString(16)
          .padStart(2, '0');
      }
    }
    return text + this.#rest;
  }

  #outcome(all: string, memory: string): Outcome {
    let at = 0;
    const registers = this.#sizes.map((size) => {
      const bytes = Buffer.from(all.slice(at, at + 2 * size), 'hex').reverse();
      at += 2 * size;
      return BigInt(`0x${bytes.toString('hex')}`);
    });
    return { registers, watched: memory.startsWith('E') ? undefined : new Uint8Array(Buffer.from(memory, 'hex')) };
  }

  #exchange(packets: readonly string[]): Promise<string[]> {
    const { promise, resolve, reject } = deferred<string[]>();
    this.#waiting = { count: packets.length, resolve, reject };
    this.#child.stdin.write(packets.map(frame).join(''), 'latin1');
    return promise;
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

/** One more turn, in which only the last case is read back. */
const ending: readonly Case[] = [{ registers: [], memory: [], watch: { address: 0n, length: 1 } }];

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: Error) => void } {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
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

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
