import { note, passingLine } from './failure.js';

/** What takes long, in its order. */
type Phase =
  | 'reading'
  | 'choosing engines for'
  | 'boots once to see where the loader puts'
  | 'waits for the firmware that starts'
  | 'waits until its loader has started';

/** A line on a terminal while a program is read, or its start is waited for. */
export class ReadingLine implements Disposable {
  readonly #name: string;
  readonly #isTerminal = process.stderr.isTTY === true;
  readonly isShown: boolean;

  /** `wanted`: also where stderr is no terminal, a line each then, which stays. */
  constructor(name: string, wanted: boolean, phase: Phase = 'reading') {
    this.#name = name;
    this.isShown = wanted || this.#isTerminal;
    this.phase(phase);
  }

  phase(phase: Phase): void {
    if (this.#isTerminal) passingLine(`rsptrace: ${phase} ${this.#name}`);
    else note(this.isShown && `${phase} ${this.#name}`);
  }

  [Symbol.dispose](): void {
    if (this.#isTerminal) passingLine('');
  }
}
