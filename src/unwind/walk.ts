import type { Confidence } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import { type CodeAddress, fromCode, toCode } from '../dwarf/index.js';
import { type Applied, applyRow } from './apply-row.js';
import type { CodeMap } from './code-map.js';
import {
  type End,
  type EndReason,
  endOf,
  type Found,
  type Frame,
  type Hooked,
  type Place,
  type UnwinderName,
} from './frame.js';
import type { RegisterFile, RegisterSet } from './registers.js';
import type { StackWindow } from './stack-window.js';

/** What a walk needs of the program. */
export interface WalkContext {
  readonly file: RegisterFile;
  readonly code: CodeMap;
  /** Where the program begins. */
  readonly entry: CodeAddress;
  readonly depth: number;
  readonly hooked: Hooked;
  find(place: Place): { readonly name: UnwinderName; readonly found: Found } | undefined;
}

const ranks: Readonly<Record<Confidence, number>> = { sure: 0, likely: 1, guess: 2 };

/** Return addresses that are looked behind for one frame: a stack that was overwritten may show any number. */
const mostHooks = 64;

/** One stack on its way out. {@link run} goes on until it ends or wants memory that the window does not hold. */
export class Walk {
  readonly frames: Frame[] = [];
  end: End | undefined;
  readonly #context: WalkContext;
  #registers: RegisterSet;
  #pc: CodeAddress;
  #exact = true;
  #confidence: Confidence = 'sure';
  /** The CFA of the frame inside this one; frames lie further and further out, but for a trap's. */
  #inner = Number.NEGATIVE_INFINITY;
  /** Where stacks were interrupted: a chain of traps may lead in circles. */
  readonly #interrupted = new Set<string>();

  constructor(context: WalkContext, pc: bigint, registers: RegisterSet) {
    this.#context = context;
    this.#registers = registers;
    this.#pc = toCode(pc);
  }

  /** Undefined when the stack has ended; else an address that must be in the window, or known to be a hole, before the next call. */
  run(window: StackWindow): CodeAddress | undefined {
    while (this.end === undefined) {
      const needed = this.#step(window);
      if (needed !== undefined) return needed;
    }
    return undefined;
  }

  #step(window: StackWindow): CodeAddress | undefined {
    const { code, file, depth, entry } = this.#context;
    const place = { pc: this.#pc, exact: this.#exact };
    const inside = this.#exact ? this.#pc : this.#pc - 1;
    if (this.frames.length >= depth) {
      this.end = endOf('depth');
      return undefined;
    }
    if (!code.isCode(inside)) return this.#leaveNowhere(window);
    const own = code.functionAt(inside);
    if (own !== undefined && own.low === code.functionAt(entry)?.low) return this.#finish('entry');
    const picked = this.#context.find(place);
    if (picked === undefined) return this.#finish('no-unwinder');
    const { found, name } = picked;
    if (found.kind === 'end') return this.#finish(found.reason);
    let applied: Applied;
    try {
      applied = applyRow(found.row, this.#registers, this.#exact, window, file);
      if (!found.row.interrupted) applied = seeThrough(applied, this.#context, window);
    } catch (error) {
      if (!(error instanceof RsptraceError)) throw error;
      return this.#finish('no-unwinder');
    }
    if (applied.kind === 'need') return applied.address;
    if (applied.kind === 'lost') return this.#finish(applied.why);
    const { cfa, returnAddress, registers } = applied;
    if (!(cfa > this.#inner)) return this.#finish('loop');
    this.#push(cfa, name);
    if (returnAddress === undefined) this.end = endOf('undefined-return-address');
    else if (returnAddress === 0n) this.end = endOf('zero-return-address');
    else this.#goTo(returnAddress, registers, cfa, found.row.interrupted, found.confidence);
    return undefined;
  }

  #goTo(pc: bigint, registers: RegisterSet, cfa: CodeAddress, interrupted: boolean, confidence: Confidence): void {
    const { code } = this.#context;
    const next = toCode(pc);
    if (!code.isCode(interrupted ? next : next - 1)) {
      this.end = endOf('outside-code', fromCode(Number.isNaN(next) ? 0 : next));
      return;
    }
    if (interrupted) {
      const key = `${next} ${registers.numbered(this.#context.file.model.stackPointer)}`;
      if (this.#interrupted.has(key)) {
        this.end = endOf('loop');
        return;
      }
      this.#interrupted.add(key);
    }
    this.#inner = interrupted ? Number.NEGATIVE_INFINITY : cfa;
    this.#pc = next;
    this.#exact = interrupted;
    this.#registers = registers;
    if (ranks[confidence] > ranks[this.#confidence]) this.#confidence = confidence;
  }

  /** The hart itself stands where no code is: it may have come by a call through a bad pointer, and the caller is still there. */
  #leaveNowhere(window: StackWindow): CodeAddress | undefined {
    const { file, code } = this.#context;
    const called = applyRow(file.model.entryRow, this.#registers, true, window, file);
    const applied = seeThrough(called, this.#context, window);
    if (applied.kind === 'need') return applied.address;
    const caller = applied.kind === 'caller' ? applied.returnAddress : undefined;
    if (applied.kind !== 'caller' || caller === undefined || !code.isCode(toCode(caller) - 1)) {
      return this.#finish('outside-code');
    }
    this.#push(applied.cfa, 'prologue');
    this.#goTo(caller, applied.registers, applied.cfa, false, 'guess');
    return undefined;
  }

  #finish(reason: EndReason): undefined {
    this.#push(undefined, undefined);
    this.end = endOf(reason);
  }

  #push(cfa: CodeAddress | undefined, unwinder: UnwinderName | undefined): void {
    this.frames.push({
      level: this.frames.length,
      pc: fromCode(this.#pc),
      exact: this.#exact,
      registers: this.#registers,
      cfa: cfa === undefined ? undefined : fromCode(cfa),
      unwinder,
      confidence: this.#confidence,
    });
  }
}

/** The caller behind return addresses that were replaced: one for each of the functions that a tail call joined to this frame. */
function seeThrough(applied: Applied, { hooked, file }: WalkContext, window: StackWindow): Applied {
  const { stackPointer } = file.model;
  let seen = applied;
  for (let hooks = 0; hooks < mostHooks && seen.kind === 'caller' && seen.returnAddress !== undefined; hooks++) {
    const hook = hooked(seen.returnAddress);
    const stack = seen.registers.numbered(stackPointer);
    if (hook === undefined || stack === undefined) break;
    const at = toCode(stack) + hook.offset;
    const original = window.word(at);
    if (original === undefined) {
      return window.missing === undefined ? { kind: 'lost', why: 'unreadable-stack' } : { kind: 'need', address: at };
    }
    const values = seen.registers.values.slice();
    values[stackPointer] = BigInt.asUintN(64, stack + BigInt(hook.size));
    seen = { ...seen, returnAddress: original, registers: seen.registers.derive(values, seen.registers.special) };
  }
  return seen;
}
