import { Label } from './code-buffer.js';
import type { FramedCode } from './framed-code.js';
import { follow, loadAt, verifyPointer } from './integers.js';
import {
  type ExtentCopy,
  type FieldSource,
  type LoadGroup,
  loadGroups,
  type OuterCopy,
  type RecordContents,
  type RecordField,
} from './record-parts.js';
import { controlBlock } from './ring-contract.js';

/**
 * What writes a record has in the temporaries t0 to t6: t0 = the control block's address, t1 = the claim, t2 = the
 * record. Free are t3, and where there are extents t4 and t5; once the control block was read, t0 too.
 */
export interface FillParts<Code extends FramedCode> {
  /** For messages. */
  readonly name: string;
  /** Where a kept word lies in a hook frame. */
  readonly keptOffset: (index: number) => number;
  /** The number of a floating-point register of 64 bits; undefined if it is none. */
  readonly floatNumber: (name: string) => number | undefined;
  readonly storeFloat: (register: number, base: number, offset: number) => number;
  /** Jumps where an access to such a register would trap; overwrites t3. */
  readonly floatsOff: (code: Code, off: Label) => void;
  /** The instruction that reads the counter, into t3. */
  readonly readTime: number;
  /** The register that names the hart; t3 if that must be loaded. */
  readonly hart: (code: Code, from: FieldSource & { readonly kind: 'hart' }) => number;
  /**
   * In: t0 = the address of what an extent has, t4 = its bytes. Out: t0 = the first word's address, t4 = the end; equal
   * where one of them was 0. Overwrites t3 and t5.
   */
  readonly extentEnd: readonly number[];
  /** Stores the claim as the commit word, after all other stores. */
  readonly commit: readonly number[];
}

/** What fills the claimed record and commits it. It clobbers t0 and t3, and what extents and copies need. */
export function recordFilling<Code extends FramedCode>(
  parts: FillParts<Code>,
): (code: Code, record: RecordContents) => void {
  return (code, record) => new Filling(parts, code).fill(record);
}

/** log2 of it fits an immediate everywhere. */
const MAX_ALIGN = 2048;

class Filling<Code extends FramedCode> {
  readonly #parts: FillParts<Code>;
  readonly #code: Code;

  constructor(parts: FillParts<Code>, code: Code) {
    this.#parts = parts;
    this.#code = code;
  }

  fill(record: RecordContents): void {
    const isControl = ({ from }: RecordField): boolean => from.kind === 'control';
    for (const field of record.fields.filter(isControl)) this.#putField(field);
    if (record.outerCopy !== undefined) copyOuter(this.#code, record.outerCopy);
    for (const field of record.fields.filter((field) => !isControl(field))) this.#putField(field);
    for (const group of loadGroups(record.fields, MAX_ALIGN)) this.#putLoads(group);
    for (const extent of record.extents ?? []) this.#putExtent(extent);
    this.#code.emit(...this.#parts.commit);
  }

  #put({ size, at }: RecordField, register: number): void {
    const { access, temporaries } = this.#code.is;
    this.#code.emit(access('store', size, register, temporaries[2], at));
  }

  #putField(field: RecordField): void {
    const { from } = field;
    if (from.kind === 'float') this.#putFloat(field, from);
    else if (from.kind !== 'load') this.#put(field, this.#value(from));
  }

  #putFloat({ at, size }: RecordField, { name, mayBeOff }: FieldSource & { readonly kind: 'float' }): void {
    const code = this.#code;
    const [, , t2, t3] = code.is.temporaries;
    const number = this.#parts.floatNumber(name);
    if (number === undefined || size !== 8) throw new RangeError(`${name} is no floating-point register of 8 bytes`);
    const [off, done] = [new Label(), new Label()];
    if (mayBeOff) this.#parts.floatsOff(code, off);
    code.emit(this.#parts.storeFloat(number, t2, at));
    if (!mayBeOff) return;
    code.jump(done);
    code.bind(off);
    code.loadConstant(t3, -1n);
    code.store(t3, t2, at);
    code.bind(done);
  }

  /** The register that has the value; t3 if the value must be loaded or computed. */
  #value(from: Exclude<FieldSource, { readonly kind: 'load' | 'float' }>): number {
    const code = this.#code;
    const { temporaries, registerNamed, stackPointer, link, zero } = code.is;
    const [t0, , , t3] = temporaries;
    switch (from.kind) {
      case 'register':
        return code.original(registerNamed(from.name), t3);
      case 'stack-pointer':
        return code.original(stackPointer, t3);
      case 'return-address':
        return code.original(link, t3);
      case 'kept':
        code.load(t3, stackPointer, this.#keptAt(from.index));
        return t3;
      case 'constant':
        if (BigInt.asUintN(64, from.value) === 0n) return zero;
        code.loadConstant(t3, from.value);
        return t3;
      case 'time':
        code.emit(this.#parts.readTime);
        return t3;
      case 'hart':
        return this.#parts.hart(code, from);
      case 'control':
        code.load(t3, t0, from.offset);
        return t3;
      case 'outer':
        throw new RangeError(`${this.#parts.name} has no words of a thread`);
    }
  }

  #keptAt(index: number): number {
    const { frame, kept } = this.#code.frame;
    if (!Number.isInteger(index) || index < 0 || index >= kept) throw new RangeError(`No kept register ${index}`);
    return frame + this.#parts.keptOffset(index);
  }

  #putLoads({ base, align, loads }: LoadGroup): void {
    const code = this.#code;
    const { temporaries, registerNamed, stackPointer } = code.is;
    const [t0, , , t3] = temporaries;
    const [wrong, done] = [new Label(), new Label()];
    let pointer = t0;
    if (base.kind === 'register') pointer = code.original(registerNamed(base.name), t0);
    else code.load(t0, stackPointer, this.#keptAt(base.index));
    pointer = follow(code, pointer, base.through ?? [], t3, wrong);
    verifyPointer(code, pointer, align, t3, wrong);
    for (const { field, offset } of loads) {
      loadAt(code, { size: field.size, to: t3, pointer, offset, temporary: t3 });
      this.#put(field, t3);
    }
    code.jump(done);
    code.bind(wrong);
    code.loadConstant(t3, -1n);
    for (const { field } of loads) this.#put(field, t3);
    code.bind(done);
  }

  /**
   * No branch depends on the number of bytes, so that each record takes as many instructions. A word behind the end is
   * loaded from the record instead. t0 = the word's place, t4 = the end, t5 = the place that is loaded from.
   */
  #putExtent({ at, words, shift, from }: ExtentCopy): void {
    const code = this.#code;
    const { temporaries, registerNamed, move, left, sub, and, add, addi, onesIfBelow } = code.is;
    const [t0, , t2, t3, t4, t5] = temporaries;
    const done = new Label();
    const take = (to: number, name: string): void => {
      const register = code.original(registerNamed(name), to);
      if (register !== to) code.emit(move(to, register));
    };
    if (from.kind === 'registers') {
      take(t0, from.pointer);
      take(t4, from.count);
    } else {
      take(t0, from.register);
      follow(code, t0, from.through, t3, done);
      verifyPointer(code, t0, 8, t3, done);
      loadAt(code, { size: 8, to: t4, pointer: t0, offset: from.count, temporary: t4 });
      loadAt(code, { size: 8, to: t0, pointer: t0, offset: from.pointer, temporary: t3 });
    }
    if (shift > 0) code.emit(left(t4, t4, shift));
    code.emit(...this.#parts.extentEnd);
    for (let word = 0; word < words; word++) {
      code.emit(...onesIfBelow(t3, t0, t4), sub(t5, t0, t2), and(t5, t5, t3), add(t5, t5, t2));
      code.load(t5, t5, 0);
      code.store(t5, t2, at + 8 * word);
      code.emit(addi(t0, t0, 8));
    }
    code.bind(done);
  }
}

/**
 * Byte by byte, by the list at `outerPlan`. t3 = place in the list, t4 = the Future, t5 = bytes left, t0 = place in
 * the record. See `ProbeCode.outerCopySteps`.
 */
function copyOuter(code: FramedCode, { at, room }: OuterCopy): void {
  const { temporaries, access, add, addi } = code.is;
  const [t0, , t2, t3, t4, t5, t6] = temporaries;
  const [next, done] = [new Label(), new Label()];
  code.load(t4, t0, controlBlock.outer);
  code.branchZero('zero', t4, done);
  code.load(t3, t0, controlBlock.outerPlan);
  code.emit(access('load', 4, t5, t3, 0));
  code.loadConstant(t6, BigInt(room));
  code.branchBelow(t6, t5, done);
  code.emit(addi(t0, t2, at));
  code.bind(next);
  code.branchZero('zero', t5, done);
  code.emit(access('load', 4, t6, t3, 4), add(t6, t6, t4), access('load', 1, t6, t6, 0), access('store', 1, t6, t0, 0));
  code.emit(addi(t3, t3, 4), addi(t0, t0, 1), addi(t5, t5, -1));
  code.jump(next);
  code.bind(done);
}
