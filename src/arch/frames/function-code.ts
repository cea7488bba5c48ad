import { type Addr, addOffset } from '../../base/addr.js';
import type { FrameDecoder, Outcome } from './frame-analysis.js';
import type { CodeRange, FrameModel } from './frame-model.js';
import { type FrameState, plus, type Value } from './frame-state.js';

/** The most bytes of one function: larger ones exist only in damaged files. */
const MAX_CODE = 0x8_0000;

/** A stretch of the function, in offsets. */
interface Part {
  readonly low: number;
  readonly high: number;
  readonly range: CodeRange;
}

/** The instructions of one function. Offsets count from its first one. */
export class FunctionCode<I extends { readonly length: number }> {
  readonly #parts: Part[];
  readonly #model: FrameModel;
  readonly #decoder: FrameDecoder<I>;
  readonly #entry: Addr;
  readonly #decoded = new Map<number, I | undefined>();

  constructor(model: FrameModel, decoder: FrameDecoder<I>, ranges: readonly CodeRange[]) {
    this.#model = model;
    this.#decoder = decoder;
    this.#entry = ranges[0]?.start ?? (0n as Addr);
    this.#parts = ranges.map((range) => this.#part(range));
  }

  get parts(): readonly Part[] {
    return this.#parts;
  }

  /** More code of it. */
  add(range: CodeRange): void {
    const part = this.#part(range);
    this.#parts.push(part);
    for (const offset of this.#decoded.keys())
      if (offset >= part.low && offset < part.high) this.#decoded.delete(offset);
  }

  #part(range: CodeRange): Part {
    const low = this.offsetOf(range.start);
    return { low, high: low + Math.min(range.bytes.length, MAX_CODE), range };
  }

  /** The state at the first instruction, after a call. */
  get entryState(): FrameState {
    return this.#decoder.entry;
  }

  offsetOf(address: Addr): number {
    return Number(BigInt.asIntN(64, address - this.#entry));
  }

  addressOf(offset: number): Addr {
    return addOffset(this.#entry, offset);
  }

  /**
   * The addresses that an instruction uses or computes, as far as they are known. Undefined if it uses the stack
   * pointer, whose value is not known.
   */
  addresses(instruction: I, state: FrameState): readonly Value[] | undefined {
    const { stackPointer, framePointer } = this.#model;
    const found: Value[] = [];
    for (const { register, offset } of this.#decoder.addresses(instruction, state)) {
      const value = plus(state.values[register], offset);
      if (value !== undefined) found.push(value);
      // Aligned, or below a variable array: it is somewhere below the frame pointer.
      else if (register === stackPointer && state.values[framePointer]?.base !== stackPointer) return undefined;
    }
    return found;
  }

  has(offset: number): boolean {
    return this.#partOf(offset) !== undefined;
  }

  /** The instruction at an offset; undefined outside the function, or if it cannot be decoded. */
  at(offset: number): I | undefined {
    if (this.#decoded.has(offset)) return this.#decoded.get(offset);
    const part = this.#partOf(offset);
    const instruction = part && this.#decoder.decode(part.range, offset - part.low);
    this.#decoded.set(offset, instruction);
    return instruction;
  }

  execute(instruction: I, state: FrameState, offset: number): Outcome {
    return this.#decoder.execute(instruction, state, offset, this.#entry);
  }

  isPadding(instruction: I): boolean {
    return this.#decoder.isPadding(instruction);
  }

  #partOf(offset: number): Part | undefined {
    return this.#parts.find(({ low, high }) => offset >= low && offset < high);
  }
}
