import { beginsAgain, type CallRegisters, type CallSignature } from '../../../arch/index.js';
import type { Addr } from '../../../base/addr.js';
import {
  type Crossing,
  type CrossingKind,
  type HitMemory,
  type MemoryRequest,
  type Moment,
  stackNumber,
} from '../../../calls/index.js';
import type { TracerContext } from '../kind.js';
import { callArguments, callReads } from './call-values.js';
import type { FoundTraps } from './resolve.js';
import { type OpenTrap, TrapCalls } from './trap-calls.js';

/** Stands for the return address that a system call has not: see `BlockEdge.key`. */
const key = -(1n << 62n);
const none: readonly never[] = [];

/** A thread's system call that has not ended. */
interface OpenSystemCall {
  readonly call: OpenTrap;
  readonly stackPointer: number;
  readonly number: bigint;
  /** A signal has interrupted it, and it will begin again unless a handler has it fail. */
  isInterrupted: boolean;
}

/** What a thread's registers say at a stop. */
interface AtCall {
  readonly number: bigint;
  readonly result: bigint;
  readonly stackPointer: number;
}

/**
 * Makes calls of the system calls of a process, of which a stub reports begin and end. Each belongs to its thread,
 * which may come back from it on another stack: from a signal's handler.
 */
export class ProcessCalls extends TrapCalls implements CrossingKind {
  readonly seesSystemCalls = true;
  readonly #found: FoundTraps;
  readonly #context: TracerContext;
  readonly #registers: CallRegisters;
  /** By hart. */
  readonly #open: (OpenSystemCall | undefined)[] = [];

  constructor(found: FoundTraps, context: TracerContext, registers: CallRegisters) {
    super(context, registers.result, true);
    this.#found = found;
    this.#context = context;
    this.#registers = registers;
  }

  isAt(): boolean {
    return false;
  }

  /** Texts that a call is given, wherever it may begin. */
  reads(at: Moment, memory: HitMemory): readonly MemoryRequest[] {
    const here = this.#read(at);
    const name = here && this.#nameOf(here.number);
    const isRead = name !== undefined && this.#context.values !== false && this.#found.wants([`syscall::${name}`]);
    if (!here || !isRead || !this.#isEntry(at, here, this.#open[at.hart])) return none;
    return callReads(this.#signature(name), this.#passed(at), memory);
  }

  cross(at: Moment, memory: HitMemory): Crossing {
    const here = this.#read(at);
    if (!here) return {};
    const open = this.#open[at.hart];
    const isSame = open?.number === here.number && open.call.from.pc === at.pc;
    if (open?.isInterrupted)
      return isSame || this.#isRestart(here, open, at.pc) ? this.#goesOn(open) : this.#next(at, here, open, memory);
    return this.#isEntry(at, here, open) ? this.#next(at, here, undefined, memory) : this.#end(at, here, open);
  }

  unmatched(): void {
    this.#found.seen.returnsAlone++;
  }

  #read({ registers }: Moment): AtCall | undefined {
    const { number, result } = this.#registers;
    const values = [number, result, this.#context.arch.sp].map((name) => registers.register(name));
    const [which, value, stack] = values;
    if (which === undefined || value === undefined || stack === undefined) return undefined;
    return { number: which, result: value, stackPointer: stackNumber(stack) - 1 };
  }

  /** Whether a call begins. What a stub says of that may be wrong for a thread that a call has just made. */
  #isEntry({ systemCall, pc }: Moment, { number, result }: AtCall, open: OpenSystemCall | undefined): boolean {
    const { resultBefore } = this.#registers;
    if (resultBefore === undefined) return systemCall === 'entry';
    const mayBegin = BigInt.asIntN(64, result) === resultBefore;
    // A call that the kernel has not returns the same.
    return mayBegin && !(open && open.number === number && open.call.from.pc === pc);
  }

  /** `restart_syscall` takes the place of a call that counts a time down. */
  #isRestart({ number }: AtCall, { call }: OpenSystemCall, pc: Addr): boolean {
    return call.from.pc === pc && this.#nameOf(number) === 'restart_syscall';
  }

  #goesOn(open: OpenSystemCall): Crossing {
    open.isInterrupted = false;
    open.call.exit = undefined;
    return {};
  }

  /** A call begins, behind one that was interrupted and fails. */
  #next(at: Moment, { number, stackPointer }: AtCall, failed: OpenSystemCall | undefined, memory: HitMemory): Crossing {
    this.#open[at.hart] = undefined;
    const ended = failed && this.#endOf(failed);
    const called = this.#nameOf(number);
    const name = `syscall::${called ?? BigInt.asIntN(64, number)}`;
    if (!this.#found.wants([name])) {
      this.#found.seen.others.add(name);
      return { ended };
    }
    const signature = called === undefined ? undefined : this.#signature(called);
    const values = callArguments(signature, this.#passed(at), memory);
    const from = { pc: at.pc, stackPointer: BigInt(stackPointer), isUser: true };
    const call = this.open({ kind: 'syscall', name, values, signature, from }, at);
    this.#open[at.hart] = { call, stackPointer, number, isInterrupted: false };
    return { ended, begun: { space: at.space ?? 0, key, stackPointer, call } };
  }

  #end(at: Moment, { result }: AtCall, open: OpenSystemCall | undefined): Crossing {
    if (!open) {
      this.unmatched();
      return {};
    }
    if (beginsAgain(result)) {
      open.isInterrupted = true;
      this.keepResult(open.call, at);
      return {};
    }
    return { ended: this.#endOf(open) };
  }

  #endOf({ call, stackPointer }: OpenSystemCall): Crossing['ended'] {
    this.#open[call.hart] = undefined;
    return { space: 0, key, stackPointer, isOf: (one) => one === call };
  }

  #passed({ registers }: Moment): readonly bigint[] {
    return this.#registers.arguments.map((name) => registers.register(name) ?? 0n);
  }

  #signature(name: string): CallSignature | undefined {
    return this.#context.arch.linux?.callSignature?.(name);
  }

  #nameOf(number: bigint): string | undefined {
    return this.#context.arch.linux?.callName?.(Number(BigInt.asIntN(64, number)));
  }

  /** The process runs another program. */
  forget(): void {
    this.#open.length = 0;
  }
}
