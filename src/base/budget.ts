import { RsptraceError } from './errors.js';

/**
 * Work that is allowed for a file of any size, and in addition for each of its bytes. One unit takes some 30 ns: an
 * entry of debug info read.
 */
const WORK = 20_000_000;
const WORK_PER_BYTE = 32;
/** The same of memory, in bytes. */
const MEMORY = 128 << 20;
const MEMORY_PER_BYTE = 24;
/** Cost of an error that is thrown and caught. */
const FAULT = 100;
/** Work of one answer that is not counted, see {@link Budget.answer}. */
const FREE_ANSWER = 2000;

/**
 * What the reading of one file may cost, in proportion to its size. A few kilobytes can ask for hours: ten thousand
 * functions may share one list of ranges, and names may repeat each other. Every reader charges first; beyond the
 * budget all readers throw the same error, `ELF_TOO_COSTLY`. Real programs stay far below it: the best compressed
 * ones use an eighth.
 *
 * Work is counted, not timed, so that the same file fails at the same place on every machine.
 */
export class Budget {
  readonly #path: string;
  #size: number;
  readonly #times: number;
  #workLeft = 0;
  #bytesLeft = 0;
  #answering = false;
  #over: RsptraceError | undefined;

  /** `times`: factor on the usual budget; by default the environment variable RSPTRACE_BUDGET, else 1. */
  constructor(path: string, size: number, times = budgetFactor()) {
    this.#path = path;
    this.#size = size;
    this.#times = times;
    this.renew();
  }

  /** The file is read once more, for somebody who asks for something else: that may cost as much again. */
  renew(): void {
    if (!this.#over) [this.#workLeft, this.#bytesLeft] = this.#whole;
  }

  get #whole(): readonly [work: number, memory: number] {
    return [this.#times * (WORK + this.#size * WORK_PER_BYTE), this.#times * (MEMORY + this.#size * MEMORY_PER_BYTE)];
  }

  /** Another file is read with this one, at this one's cost. */
  grow(bytes: number): void {
    this.#size += bytes;
    this.#workLeft += this.#times * bytes * WORK_PER_BYTE;
    this.#bytesLeft += this.#times * bytes * MEMORY_PER_BYTE;
  }

  /** Charges work before it is done. `what` names the input in the error. */
  spend(units: number, what: string): void {
    this.#workLeft -= units;
    if (!(this.#workLeft >= 0)) throw this.#tooCostly(what, 'work');
  }

  /** Charges the cost of an error that is thrown and skipped, because a damaged file may have millions of faults. */
  fault(what: string): void {
    this.spend(FAULT, what);
  }

  /** Charges memory before it is taken, or as soon as its size is known. */
  hold(bytes: number, what: string): void {
    this.#bytesLeft -= bytes;
    if (!(this.#bytesLeft >= 0)) throw this.#tooCostly(what, 'memory');
  }

  /**
   * Answers a question that comes with the target's events, not with the file's contents. Its first units are not
   * counted, so that a recording of days does not use up the file's budget.
   */
  answer<T>(read: () => T): T {
    if (this.#answering) return read();
    const before = this.#workLeft;
    if (before < 0) return read();
    this.#workLeft += FREE_ANSWER;
    this.#answering = true;
    try {
      return read();
    } finally {
      this.#answering = false;
      this.#workLeft = Math.min(before, this.#workLeft);
    }
  }

  /** The used part of the whole budget. */
  get used(): { readonly work: number; readonly memory: number } {
    const [work, memory] = this.#whole;
    return { work: 1 - Math.max(0, this.#workLeft) / work, memory: 1 - Math.max(0, this.#bytesLeft) / memory };
  }

  /** Always the first error: a reader that goes on after it gets it again. */
  #tooCostly(what: string, kind: 'work' | 'memory'): RsptraceError {
    this.#workLeft = Number.NEGATIVE_INFINITY;
    this.#over ??= new RsptraceError(
      'ELF_TOO_COSTLY',
      `reading ${what} of ${this.#path} takes more ${kind} than a file of ${sizeText(this.#size)} should need`,
      {
        hint:
          'the file is damaged, or made to be slow to read: build it again from its source; ' +
          `where you trust it, set RSPTRACE_BUDGET=${this.#times * 10} to allow ten times as much`,
      },
    );
    return this.#over;
  }
}

function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1 << 20 ? `${Math.round(bytes / 1024)} KiB` : `${Math.round(bytes / (1 << 20))} MiB`;
}

/** How many times the usual cost of reading a file is allowed: the environment variable RSPTRACE_BUDGET, else 1. */
export function budgetFactor(): number {
  const times = Number(process.env.RSPTRACE_BUDGET ?? 1);
  return times > 0 && times < 1e6 ? times : 1;
}
