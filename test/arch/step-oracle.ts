import { readPacket, StubChild, writePacket } from './stub-child.js';

/** What an instruction really does: puts registers and memory into a target behind a stub, steps once, and reads back. */
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
  readonly #stub: StubChild;
  /** Bytes of each register at the start of the `g` packet. */
  readonly #sizes: readonly number[];
  /** What comes after the registers that cases set: written back as it was. */
  #rest = '';

  private constructor(stub: StubChild, sizes: readonly number[]) {
    this.#stub = stub;
    this.#sizes = sizes;
  }

  /** Starts the stub; with `until` its program runs to that address first. */
  static async start(
    command: string,
    args: readonly string[],
    sizes: readonly number[],
    until?: bigint,
  ): Promise<StepOracle> {
    const stub = await StubChild.start(command, args);
    const oracle = new StepOracle(stub, sizes);
    // One step first: out of whatever the kernel was doing for the program when it stopped.
    await stub.exchange(['?']);
    await stub.exchange(['vCont;s']);
    if (until !== undefined) {
      const place = `0,${until.toString(16)},1`;
      await stub.exchange([`Z${place}`, 'vCont;c']);
      await stub.exchange([`z${place}`]);
    }
    const [all = ''] = await stub.exchange(['g']);
    oracle.#rest = all.slice(2 * sizes.reduce((sum, size) => sum + size, 0));
    return oracle;
  }

  /** Runs all cases, one step each; the reads of one go out in the same write as the next one's set-up. */
  async run(cases: readonly Case[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    let reads: string[] = [];
    for (const [index, { registers, memory, watch }] of [...cases, ...ending].entries()) {
      const writes = memory.map(({ address, bytes }) => writePacket(address, bytes));
      const resume = index < cases.length ? [...writes, `G${this.#encode(registers)}`, 'vCont;s'] : [];
      const replies = await this.#stub.exchange([...reads, ...resume]);
      if (reads.length > 0) outcomes.push(this.#outcome(replies[0] ?? '', replies[1] ?? ''));
      const set = replies.slice(reads.length);
      if (set.slice(0, -1).some((reply) => reply !== 'OK'))
        throw new Error(`Case ${index} was not set up: ${set.join(' ')}`);
      if (resume.length > 0 && !/^T05/.test(set.at(-1) ?? ''))
        throw new Error(`Case ${index} did not step: ${set.at(-1)}`);
      reads = ['g', readPacket(watch.address, watch.length)];
    }
    return outcomes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stub[Symbol.asyncDispose]();
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
}

/** One more turn, in which only the last case is read back. */
const ending: readonly Case[] = [{ registers: [], memory: [], watch: { address: 0n, length: 1 } }];
