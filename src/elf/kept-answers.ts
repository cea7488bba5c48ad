import type { CodeAddress } from './code-address.js';
import type { ElfFile } from './elf.js';
import { Kept } from './kept.js';

/** An answer about a function: words for the user, or none. */
type Answer = string | undefined;

/** Addresses in windows of a `CodeSpace` are not kept. */
const MOST = 2 ** 52;

/**
 * What one question about functions was answered, by their addresses: what their code alone decides. Answers are kept
 * for the next start, see {@link Kept}, by the program's own addresses:
 *
 *     addresses | index of each one's words, 0 for none | all words as JSON
 */
export class KeptAnswers {
  readonly #kept: Kept | undefined;
  readonly #name: string;
  readonly #bias: number;
  readonly #known = new Map<CodeAddress, Answer>();
  /** Those that depend on where in a circle of jumps was asked first are not kept. */
  readonly #circular = new Map<CodeAddress, Answer>();
  /** Answers since nothing was being asked, with what is given for those in `#open` meanwhile. */
  readonly #fresh = new Map<CodeAddress, Answer>();
  readonly #open = new Set<CodeAddress>();
  #isCircular = false;
  #isNew = false;

  constructor(elf: ElfFile, name: string) {
    this.#kept = Kept.of(elf);
    this.#name = name;
    this.#bias = Number(elf.loadBias);
    const [at, of, words] = this.#kept?.read(name) ?? [];
    if (at === undefined || of === undefined || words === undefined) return;
    const texts: readonly string[] = JSON.parse(Buffer.from(words).toString());
    for (let i = 0; i < at.length; i++) this.#known.set((at[i] as number) + this.#bias, texts[(of[i] as number) - 1]);
  }

  /** The answer for a function. `meanwhile`: what is given to who asks about it while it is being found. */
  of(code: CodeAddress, meanwhile: Answer, find: () => Answer): Answer {
    for (const answers of [this.#known, this.#circular, this.#fresh]) {
      if (!answers.has(code)) continue;
      if (this.#open.has(code)) this.#isCircular = true;
      return answers.get(code);
    }
    this.#open.add(code);
    this.#fresh.set(code, meanwhile);
    try {
      const answer = find();
      this.#fresh.set(code, answer);
      return answer;
    } catch (error) {
      this.#fresh.delete(code);
      throw error;
    } finally {
      this.#open.delete(code);
      if (this.#open.size === 0) this.#settle();
    }
  }

  #settle(): void {
    const into = this.#isCircular ? this.#circular : this.#known;
    for (const [code, answer] of this.#fresh) into.set(code, answer);
    this.#isNew ||= !this.#isCircular;
    this.#isCircular = false;
    this.#fresh.clear();
  }

  /** Keeps what was answered anew. */
  keep(): void {
    if (!this.#isNew) return;
    this.#isNew = false;
    const known = [...this.#known].filter(([code]) => code < MOST);
    const texts = [...new Set(known.flatMap(([, answer]) => answer ?? []))];
    const indexes = new Map(texts.map((text, i) => [text, i + 1]));
    this.#kept?.write(this.#name, [
      Float64Array.from(known, ([code]) => code - this.#bias),
      Uint32Array.from(known, ([, answer]) => (answer === undefined ? 0 : (indexes.get(answer) as number))),
      Buffer.from(JSON.stringify(texts)),
    ]);
  }
}
