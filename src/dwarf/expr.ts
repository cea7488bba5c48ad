// DWARF expressions and location descriptions: DWARF 5, sections 2.5 and 2.6, opcodes of section 7.7.1, and the GNU
// forms of DWARF 4 producers.
//
// An evaluation asks for what it needs from outside (a register, memory, the frame base ...) and goes on with the
// answer. So the same code runs against a live stub, a dump, or nothing. Refused: the xderef family (no address
// spaces here). Steps and stack are bounded, because a crafted expression may loop.
import { type Addr, addr } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import { littleEndian } from '../base/little-endian.js';
import { DW_AT } from './constants.js';
import { operate, ValueStack } from './expr-stack.js';
import { type BaseType, badExpression, baseTypeAt, convert, generic, typed } from './expr-values.js';
import { indexedWord } from './forms.js';
import { DW_OP } from './op-codes.js';
import type { Unit } from './unit.js';

/** A request of an evaluation. The answer is an unsigned number, or undefined if it is not available. */
export type Need =
  | { readonly kind: 'register'; readonly register: number }
  /** `size` bytes, at most 16, as a little-endian number. */
  | { readonly kind: 'memory'; readonly address: Addr; readonly size: number }
  | { readonly kind: 'frame-base' }
  | { readonly kind: 'cfa' }
  /** The address of thread-local storage at an offset. */
  | { readonly kind: 'tls'; readonly offset: bigint }
  /** The value of an expression at the function's entry. */
  | { readonly kind: 'entry-value'; readonly expression: Uint8Array }
  /** An object's own address, a caller's value for a parameter that gcc has removed, the value of another variable. */
  | { readonly kind: 'unserved' };

export type Answer = bigint | undefined;

/** Where (a part of) an object lies. */
export type Location =
  | { readonly kind: 'memory'; readonly address: Addr }
  | { readonly kind: 'register'; readonly register: number }
  /** The object is nowhere, but this is its value. */
  | { readonly kind: 'value'; readonly value: bigint }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** A pointer that was optimised away, to `offset` bytes into what the DIE describes. */
  | { readonly kind: 'implicit-pointer'; readonly die: number; readonly offset: number }
  | { readonly kind: 'optimized-out' };

/** `bitSize` is undefined when the piece is the whole object. */
export interface Piece {
  readonly location: Location;
  readonly bitSize: number | undefined;
  readonly bitOffset: number;
}

export type Evaluated = { readonly pieces: readonly Piece[] } | { readonly missing: Need };

const MAX_STEPS = 10_000;
const MAX_CALLS = 16;

/** Evaluates with answers that are available at once. Throws `DWARF_DAMAGED` for a damaged expression. */
export function evaluate(expression: Uint8Array, unit: Unit, answer: (need: Need) => Answer): Evaluated {
  const evaluation = begin(expression, unit);
  let step = evaluation.next();
  while (step.done !== true) {
    const found = answer(step.value);
    if (found === undefined) return { missing: step.value };
    step = evaluation.next(found);
  }
  return { pieces: step.value };
}

/** The same with answers that must be fetched. */
export async function evaluateAsync(
  expression: Uint8Array,
  unit: Unit,
  answer: (need: Need) => Promise<Answer>,
): Promise<Evaluated> {
  const evaluation = begin(expression, unit);
  let step = evaluation.next();
  while (step.done !== true) {
    const found = await answer(step.value);
    if (found === undefined) return { missing: step.value };
    step = evaluation.next(found);
  }
  return { pieces: step.value };
}

function begin(expression: Uint8Array, unit: Unit): Generator<Need, Piece[], bigint> {
  return new Evaluation(unit).run(expression);
}

/** Where the operands of call frame information come from; undefined ends the evaluation. */
interface CfiOperands {
  register(number: number): bigint | undefined;
  /** `size` bytes, 1 to 8, as a little-endian number. */
  memory(address: Addr, size: number): bigint | undefined;
}

/**
 * An expression of call frame information, without calls, objects, the CFA and addresses by index (DWARF 5, section
 * 6.4.2). Gives the value that is left on top, or undefined if an operand is not available. Throws `DWARF_DAMAGED`.
 */
export function evaluateCfi(
  expression: Uint8Array,
  initial: bigint | undefined,
  operands: CfiOperands,
): bigint | undefined {
  const evaluation = new Evaluation(undefined).top(expression, initial);
  let step = evaluation.next();
  while (step.done !== true) {
    const found = operandOf(step.value, operands);
    if (found === undefined) return undefined;
    step = evaluation.next(found);
  }
  return step.value;
}

function operandOf(need: Need, operands: CfiOperands): bigint | undefined {
  if (need.kind === 'register') return operands.register(need.register);
  if (need.kind !== 'memory') throw badExpression(`it asks for its ${need.kind}, ${notInFrames}`);
  if (need.size > 8) throw badExpression(`it reads ${need.size} bytes at once`);
  return operands.memory(need.address, need.size);
}

const notInFrames = 'which call frame information may not use';

class Evaluation {
  /** Undefined for call frame information. */
  readonly #own: Unit | undefined;
  readonly #stack = new ValueStack();
  readonly #pieces: Piece[] = [];
  /** The place for the next piece, or for the end, if it is not an address on the stack. */
  #location: Location | undefined;
  #steps = 0;

  constructor(unit: Unit | undefined) {
    this.#own = unit;
  }

  get #unit(): Unit {
    if (this.#own === undefined) throw badExpression(`it refers to a unit, ${notInFrames}`);
    return this.#own;
  }

  *top(expression: Uint8Array, initial: bigint | undefined): Generator<Need, bigint, bigint> {
    if (initial !== undefined) this.#stack.push(generic(initial));
    yield* this.#execute(expression, 0);
    if (this.#location || this.#pieces.length > 0) throw badExpression(`it describes a place, ${notInFrames}`);
    return this.#stack.pop().bits;
  }

  *run(expression: Uint8Array): Generator<Need, Piece[], bigint> {
    yield* this.#execute(expression, 0);
    if (this.#pieces.length === 0) this.#addPiece(undefined, 0);
    return this.#pieces;
  }

  #addPiece(bitSize: number | undefined, bitOffset: number): void {
    let location = this.#location;
    this.#location = undefined;
    if (location === undefined) {
      location = this.#stack.isEmpty
        ? { kind: 'optimized-out' }
        : { kind: 'memory', address: addr(this.#stack.pop().bits) };
    }
    this.#pieces.push({ location, bitSize, bitOffset });
  }

  #type(offset: number): BaseType | undefined {
    return baseTypeAt(this.#unit, offset);
  }

  *#execute(expression: Uint8Array, calls: number): Generator<Need, void, bigint> {
    const r = new ByteReader(expression, 'a DWARF expression');
    while (r.remaining > 0) {
      if (++this.#steps > MAX_STEPS) throw badExpression(`it does not end within ${MAX_STEPS} steps`);
      const op = r.u8();
      if (operate(this.#stack, op, r) || this.#constant(op, r) || this.#locate(op, r) || this.#jump(op, r)) continue;
      const question = this.#ask(op, r);
      if (question) {
        const { need, delta = 0n, type } = question;
        this.#stack.push(typed((yield need) + delta, type));
        continue;
      }
      const called = this.#called(op, r);
      if (called === undefined) throw badExpression(`it holds the operation 0x${op.toString(16)}, which is not served`);
      if (calls >= MAX_CALLS) throw badExpression('it calls itself without end');
      yield* this.#execute(called, calls + 1);
    }
  }

  #offset(r: ByteReader): number {
    return r.u32();
  }

  /** Values that the unit says, and conversions to its types: DWARF 5, sections 2.5.1.1 and 2.5.1.6. */
  #constant(op: number, r: ByteReader): boolean {
    const stack = this.#stack;
    switch (op) {
      case DW_OP.addr: {
        const bias = this.#own?.debug.elf.loadBias ?? 0n;
        stack.push(generic(r.u64() + bias));
        return true;
      }
      case DW_OP.addrx:
      case DW_OP.GNU_addr_index:
        stack.push(generic(indexedWord(this.#unit, r.uleb()) + this.#unit.debug.elf.loadBias));
        return true;
      case DW_OP.constx:
      case DW_OP.GNU_const_index:
        stack.push(generic(indexedWord(this.#unit, r.uleb())));
        return true;
      case DW_OP.const_type:
      case DW_OP.GNU_const_type: {
        const type = this.#type(r.uleb());
        stack.push(typed(littleEndian(r.take(r.u8())), type));
        return true;
      }
      case DW_OP.convert:
      case DW_OP.GNU_convert:
        stack.push(convert(stack.pop(), this.#type(r.uleb())));
        return true;
      case DW_OP.reinterpret:
      case DW_OP.GNU_reinterpret:
        stack.push(typed(stack.pop().bits, this.#type(r.uleb())));
        return true;
      default:
        return false;
    }
  }

  /** Location descriptions and their pieces: section 2.6.1. */
  #locate(op: number, r: ByteReader): boolean {
    if (op >= DW_OP.reg0 && op <= DW_OP.reg31) {
      this.#location = { kind: 'register', register: op - DW_OP.reg0 };
      return true;
    }
    switch (op) {
      case DW_OP.regx:
        this.#location = { kind: 'register', register: r.uleb() };
        return true;
      case DW_OP.stack_value:
        this.#location = { kind: 'value', value: this.#stack.pop().bits };
        return true;
      case DW_OP.implicit_value:
        this.#location = { kind: 'bytes', bytes: r.take(r.uleb()) };
        return true;
      case DW_OP.implicit_pointer:
      case DW_OP.GNU_implicit_pointer:
        this.#location = { kind: 'implicit-pointer', die: this.#offset(r), offset: r.sleb() };
        return true;
      case DW_OP.piece:
        this.#addPiece(r.uleb() * 8, 0);
        return true;
      case DW_OP.bit_piece:
        this.#addPiece(r.uleb(), r.uleb());
        return true;
      default:
        return false;
    }
  }

  /** Jumps inside the expression, and operations without an effect: sections 2.5.1.5 and 2.5.1.7. */
  #jump(op: number, r: ByteReader): boolean {
    if (op === DW_OP.nop || op === DW_OP.GNU_uninit) return true;
    if (op !== DW_OP.skip && op !== DW_OP.bra) return false;
    const delta = (r.u16() << 16) >> 16;
    if (op === DW_OP.bra && this.#stack.pop().bits === 0n) return true;
    const target = r.offset + delta;
    if (target < 0 || target > r.end) throw badExpression('it jumps out of itself');
    r.offset = target;
    return true;
  }

  /** Values that come from outside: section 2.5.1.2, the dereferences of 2.5.1.3, and the special ones of 2.5.1.7. */
  #ask(op: number, r: ByteReader): Question | undefined {
    if (op >= DW_OP.breg0 && op <= DW_OP.breg31)
      return { need: { kind: 'register', register: op - DW_OP.breg0 }, delta: r.sleb64() };
    switch (op) {
      case DW_OP.fbreg:
        return { need: { kind: 'frame-base' }, delta: r.sleb64() };
      case DW_OP.bregx:
        return { need: { kind: 'register', register: r.uleb() }, delta: r.sleb64() };
      case DW_OP.regval_type:
      case DW_OP.GNU_regval_type:
        return { need: { kind: 'register', register: r.uleb() }, type: this.#type(r.uleb()) };
      case DW_OP.deref:
        return this.#load(8);
      case DW_OP.deref_size:
        return this.#load(r.u8());
      case DW_OP.deref_type:
      case DW_OP.GNU_deref_type: {
        const size = r.u8();
        return this.#load(size, this.#type(r.uleb()));
      }
      case DW_OP.call_frame_cfa:
        return { need: { kind: 'cfa' } };
      case DW_OP.form_tls_address:
      case DW_OP.GNU_push_tls_address:
        return { need: { kind: 'tls', offset: this.#stack.pop().bits } };
      case DW_OP.entry_value:
      case DW_OP.GNU_entry_value:
        return { need: { kind: 'entry-value', expression: r.take(r.uleb()) } };
      case DW_OP.push_object_address:
      case DW_OP.GNU_parameter_ref:
      case DW_OP.GNU_variable_value:
        // Nobody answers it, so nothing behind it is read.
        return { need: { kind: 'unserved' } };
      default:
        return undefined;
    }
  }

  #load(size: number, type?: BaseType): Question {
    if (size < 1 || size > 16) throw badExpression(`it reads ${size} bytes at once`);
    return { need: { kind: 'memory', address: addr(this.#stack.pop().bits), size }, type };
  }

  /** The expression that a call runs (section 2.5.1.5): the location of another DIE. */
  #called(op: number, r: ByteReader): Uint8Array | undefined {
    if (op !== DW_OP.call2 && op !== DW_OP.call4 && op !== DW_OP.call_ref) return undefined;
    const { offset, debug } = this.#unit;
    const target = op === DW_OP.call_ref ? this.#offset(r) : offset + (op === DW_OP.call2 ? r.u16() : r.u32());
    return debug.die(target)?.block(DW_AT.location) ?? NOTHING;
  }
}

/** What an operation asks for; it pushes the answer plus `delta`, as this type. */
interface Question {
  readonly need: Need;
  readonly delta?: bigint;
  readonly type?: BaseType | undefined;
}

const NOTHING = new Uint8Array(0);
