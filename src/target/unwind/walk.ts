import type { Confidence } from '../../arch/index.js';
import { type Addr, addr, distance } from '../../base/addr.js';
import { isDamage } from '../../base/errors.js';
import { type Applied, applyRow } from './apply-row.js';
import type { CodeImage, CodeImages } from './code-image.js';
import { type End, type EndReason, endOf, type Frame, type Hooked, type Picked, type UnwinderName } from './frame.js';
import type { LeftCode } from './left-code.js';
import type { RegisterFile, RegisterSet } from './registers.js';
import type { StackWindow } from './stack-window.js';

/** What a walk needs of the program. */
export interface WalkContext {
  readonly file: RegisterFile;
  readonly images: CodeImages;
  readonly unwinder: UnwinderName | 'auto';
  readonly depth: number;
  readonly hooked: Hooked;
  readonly left: Pick<LeftCode, 'at' | 'isBehindCall'>;
}

const ranks: Readonly<Record<Confidence, number>> = { sure: 0, likely: 1, guess: 2 };

/** How many replaced return addresses are followed for one frame: an overwritten stack may show any number. */
const mostHooks = 64;

/** One walk of a stack, outwards. {@link run} goes on until the stack ends or memory is missing in the window. */
export class Walk {
  readonly frames: Frame[] = [];
  end: End | undefined;
  readonly #context: WalkContext;
  #registers: RegisterSet;
  #pc: Addr;
  #image: CodeImage | undefined;
  #exact = true;
  #confidence: Confidence = 'sure';
  /** The CFA of the frame inside this one. Frames lie further and further out, except for a trap's. */
  #inner: Addr | undefined;
  /** Where stacks were interrupted: a chain of traps may lead in circles. */
  readonly #interrupted = new Set<string>();

  constructor(context: WalkContext, pc: bigint, registers: RegisterSet) {
    this.#context = context;
    this.#registers = registers;
    this.#pc = addr(pc);
    this.#image = context.images.at(pc, 0);
  }

  /**
   * Undefined if the stack has ended; else an address that must be in the window, or known to be a hole, before the
   * next call.
   */
  run(window: StackWindow): Addr | undefined {
    while (this.end === undefined) {
      const needed = this.#step(window);
      if (needed !== undefined) return needed;
    }
    return undefined;
  }

  #step(window: StackWindow): Addr | undefined {
    const { depth, unwinder } = this.#context;
    const image = this.#image;
    if (this.frames.length >= depth) {
      this.end = endOf('depth');
      return undefined;
    }
    if (image === undefined) return this.#leaveNowhere(window);
    const pc = image.toCode(this.#pc);
    if (image.isEntry(this.#exact ? pc : pc - 1)) return this.#finish('entry');
    const place = { pc, exact: this.#exact };
    let picked = image.find(place, unwinder);
    let applied = picked && this.#apply(picked, window);
    if (unwinder === 'auto' && applied?.kind === 'lost' && applied.why === 'no-unwinder') {
      // The register is not known that the frame is found by: the stack pointer always is.
      picked = image.find(place, 'prologue') ?? picked;
      applied = picked && this.#apply(picked, window);
    }
    if (picked === undefined || applied === undefined) return this.#finish('no-unwinder');
    const { found, name } = picked;
    if (found.kind === 'end') return this.#finish(found.reason);
    if (applied.kind === 'need') return applied.address;
    if (applied.kind === 'lost') return this.#finish(isOutermost(picked) ? 'undefined-return-address' : applied.why);
    const { cfa, returnAddress, registers } = applied;
    if (this.#inner !== undefined && distance(this.#inner, cfa) <= 0) return this.#finish('loop');
    this.#push(cfa, name);
    if (returnAddress === undefined) this.end = endOf('undefined-return-address');
    else if (returnAddress === 0n) this.end = endOf('zero-return-address');
    else if (!found.row.interrupted && this.#wouldBeginAgain(returnAddress)) this.end = endOf('jumped-to');
    else this.#goTo(returnAddress, registers, cfa, found.row.interrupted, found.confidence);
    return undefined;
  }

  /** What a row says of this frame; an end has none. */
  #apply({ found }: Picked, window: StackWindow): Applied {
    const { file } = this.#context;
    if (found.kind === 'end') return { kind: 'lost', why: 'no-unwinder' };
    try {
      const applied = applyRow(found.row, this.#registers, this.#exact, window, file);
      return found.row.interrupted ? applied : seeThrough(applied, this.#context, window);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return { kind: 'lost', why: 'no-unwinder' };
    }
  }

  /**
   * Whether this frame's function would return to its own beginning, where no call ends. A switch of stacks has then
   * jumped to a thread's first function through the register of return addresses.
   */
  #wouldBeginAgain(returnAddress: bigint): boolean {
    const image = this.#image;
    const own = image?.functionAt(image.toCode(this.#pc) - (this.#exact ? 0 : 1));
    if (!image || own?.low !== image.toCode(returnAddress)) return false;
    return !this.#context.left.isBehindCall(addr(returnAddress));
  }

  #goTo(pc: bigint, registers: RegisterSet, cfa: Addr, interrupted: boolean, confidence: Confidence): void {
    const { images } = this.#context;
    const next = addr(pc);
    const image = images.at(next, interrupted ? 0 : 1);
    if (image === undefined) {
      // Code that the entry jumps to has no caller in the program: what started it lies outside.
      const isBegin = this.#image?.isJoinedToEntry(this.#image.toCode(this.#pc)) ?? false;
      this.end = isBegin ? endOf('entry') : endOf('outside-code', next);
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
    this.#inner = interrupted ? undefined : cfa;
    this.#pc = next;
    this.#image = image;
    this.#exact = interrupted;
    this.#registers = registers;
    if (ranks[confidence] > ranks[this.#confidence]) this.#confidence = confidence;
  }

  /**
   * The hart itself is where no code is. It may have come by a call through a bad pointer, so the caller is still
   * there.
   */
  #leaveNowhere(window: StackWindow): Addr | undefined {
    const { file, images } = this.#context;
    const called = applyRow(file.model.entryRow, this.#registers, true, window, file);
    const applied = seeThrough(called, this.#context, window);
    if (applied.kind === 'need') return applied.address;
    const caller = applied.kind === 'caller' ? applied.returnAddress : undefined;
    if (applied.kind !== 'caller' || caller === undefined || images.at(caller, 1) === undefined) {
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

  #push(cfa: Addr | undefined, unwinder: UnwinderName | undefined): void {
    this.frames.push({
      level: this.frames.length,
      pc: this.#pc,
      image: this.#image,
      exact: this.#exact,
      registers: this.#registers,
      cfa,
      unwinder,
      confidence: this.#confidence,
    });
  }
}

/**
 * Call frame information says explicitly that nobody called. If only code analysis finds no caller, there may be one.
 */
function isOutermost({ name, found }: Picked): boolean {
  return (
    name === 'cfi' && found.kind === 'row' && found.row.registers.get(found.row.returnAddress)?.kind === 'undefined'
  );
}

/** The caller behind replaced return addresses: one for each function that a tail call joined to this frame. */
function seeThrough(applied: Applied, { hooked, left, file }: WalkContext, window: StackWindow): Applied {
  const { stackPointer } = file.model;
  let seen = applied;
  for (let hooks = 0; hooks < mostHooks && seen.kind === 'caller' && seen.returnAddress !== undefined; hooks++) {
    if (seen.returnAddress === 0n) break;
    window.missing = undefined;
    const hook = hooked(seen.returnAddress) ?? left.at(seen.returnAddress, window);
    if (hook === undefined && window.missing !== undefined) return { kind: 'need', address: window.missing };
    const stack = seen.registers.numbered(stackPointer);
    if (hook === undefined || stack === undefined) break;
    const original = window.word(stack, hook.offset);
    if (original === undefined) {
      return window.missing === undefined
        ? { kind: 'lost', why: 'unreadable-stack' }
        : { kind: 'need', address: window.missing };
    }
    const values = seen.registers.values.slice();
    values[stackPointer] = BigInt.asUintN(64, stack + BigInt(hook.size));
    seen = { ...seen, returnAddress: original, registers: seen.registers.derive(values, seen.registers.special) };
  }
  return seen;
}
