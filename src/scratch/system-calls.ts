/*
 * System calls that the target runs for the client, at a stop. Arguments and number go into the registers of the
 * stopped thread. That thread alone is stepped over a system call instruction that the process has anyway in
 * executable memory. So no byte of code is changed. Then all registers are restored. The architecture has the
 * registers' names.
 *
 * Meanwhile the register by which the kernel restarts calls (orig_rax on x86) is -1. So no system call is restarted.
 * Otherwise one might be, because the thread may have been stopped inside a call of its own. In the end the register
 * is restored, and the kernel then restarts the right call.
 */

import type { Architecture, LinuxCall, SystemCallModel } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { pidOf, programSignal, type RegisterBlock, registersOf, type Session, type StopReply } from '../rsp/index.js';
import { finishOwnCall } from '../target/index.js';
import { findInstruction } from './call-instruction.js';
import { keepSequence } from './interrupted-sequence.js';
import { leadToThread, masksOf, saveThread, takeBackThread } from './saved-thread.js';

/** Runs one call; a result within [-4095, -1] is a negated errno. */
export type SystemCall = (name: LinuxCall, ...parameters: readonly (bigint | number)[]) => Promise<bigint>;

const maskBytes = 8;
/** KILL and STOP. */
const unblockable = (1n << 8n) | (1n << 18n);
const [SIGINT, SIGTRAP, SIGSYS] = [2, 5, 31];
const SIG_BLOCK = 0;
const SIG_SETMASK = 2;
/**
 * All signals but those that an instruction itself raises (ILL, TRAP, BUS, FPE, SEGV, SYS): if they were blocked,
 * they would lose their handlers.
 */
const blockedSignals = [4, 5, 7, 8, 11, 31].reduce(
  (mask, signal) => mask & ~(1n << BigInt(signal - 1)),
  2n ** 64n - 1n,
);
/** How long injected code may run, in milliseconds. */
const longestRunMs = 5000;
/** How many signals may come before the instruction is run. */
const stepTries = 100;

interface Callable {
  readonly session: Session;
  readonly arch: Architecture;
  readonly model: SystemCallModel;
}

/** Runs system calls in the process of a session, whose target must be stopped. Made by {@link SystemCalls.open}. */
export class SystemCalls {
  /** The process's number, as the kernel of the stub's machine counts it. */
  readonly pid: number;
  readonly session: Session;
  readonly arch: Architecture;
  readonly #model: SystemCallModel;
  readonly #instruction: Addr;

  private constructor({ session, arch, model }: Callable, pid: number, instruction: Addr) {
    this.session = session;
    this.arch = arch;
    this.#model = model;
    this.pid = pid;
    this.#instruction = instruction;
  }

  /**
   * Finds out whether the target is a process that can run system calls, and where its instruction is.
   * @throws RsptraceError `SCRATCH_UNAVAILABLE` if not
   */
  static async open(session: Session, arch: Architecture, hart = stoppedHart(session)): Promise<SystemCalls> {
    const pid = pidOf(hart);
    const model = arch.linux?.systemCalls;
    if (!model) throw unavailable(`system calls on ${arch.name} are not known`);
    const isLinux = session.target.register(model.restart)?.offsetInG !== undefined;
    if (!isLinux || (await session.stub()).isQemu) {
      throw unavailable(`the target is no ${arch.name} Linux process`);
    }
    if (pid === undefined) throw unavailable('the stub does not say which process it debugs');
    const registers = await registersOf(session, hart);
    const number = Number.parseInt(pid, 16);
    const status = await statusOf(session, hart);
    const refused = model.refused(registers, status) ?? whyNoCalls(status);
    if (refused !== undefined) throw unavailable(refused);
    const instruction = await findInstruction(session, number, model.instruction, arch.codeAlignment);
    if (instruction === undefined) throw unavailable('no system call instruction was found in the process');
    return new SystemCalls({ session, arch, model }, number, instruction);
  }

  /** Why the process may make no calls at this stop: a filter may have come since the last one. */
  async refusal(): Promise<string | undefined> {
    return whyNoCalls(await statusOf(this.session, stoppedHart(this.session)));
  }

  /**
   * Lets `body` make calls, one after another, and restores the registers, whatever happens. A signal that comes
   * meanwhile, or that has stopped the thread, is sent to it again. It sees that when it goes on.
   * @throws RsptraceError `SCRATCH_UNAVAILABLE`, `RSP_*`
   */
  async with<T>(body: (call: SystemCall) => Promise<T>): Promise<T> {
    const session = this.session;
    await finishOwnCall(session);
    const hart = stoppedHart(session);
    const refused = await this.refusal();
    if (refused !== undefined) throw unavailable(refused);
    const { instruction } = this.#model;
    const there = await session.memory(hart).read(this.#instruction, instruction.length);
    if (there === undefined || Buffer.compare(there, instruction) !== 0) {
      throw unavailable('the system call instruction of the process is gone');
    }
    const before = await registersOf(session, hart);
    const stackPointer = before.register(this.arch.sp) ?? 0n;
    const putBack = await saveThread(session, hart, stackPointer);
    if (!putBack) throw unavailable('the stack of the thread has no room');
    const putSequenceBack = await keepSequence(session, hart, before, [this.arch.pc, this.#model.threadPointer]);
    const held = signalsOf(session);
    const call: SystemCall = (name, ...parameters) => this.#call(hart, held, name, parameters);
    try {
      return await this.#withoutSignals(before, held, call, () => body(call));
    } finally {
      if (session.state.kind === 'idle') {
        await this.#restore(hart, before);
        await putSequenceBack();
        await putBack();
      }
    }
  }

  /**
   * Restores what a killed rsptrace had borrowed of a thread: its registers and its signal mask.
   * @returns false if nothing was borrowed
   */
  static async takeBack(session: Session, arch: Architecture, hart: string): Promise<boolean> {
    const stackPointer = await takeBackThread(session, arch, hart);
    if (stackPointer === undefined) return false;
    const status = await statusOf(session, hart);
    const mask = BigInt(`0x${/^SigBlk:\s*([0-9a-f]{1,16})$/m.exec(status ?? '')?.[1] ?? '0'}`);
    const wanted = blockedSignals & ~unblockable;
    if ((mask & wanted) !== wanted) return true;
    const calls = await SystemCalls.open(session, arch, hart);
    const old = addOffset(masksOf(stackPointer), maskBytes);
    const before = await registersOf(session, hart);
    try {
      await calls.#call(hart, [], 'rt_sigprocmask', [SIG_SETMASK, old, 0, maskBytes]);
    } finally {
      if (session.state.kind === 'idle') await calls.#restore(hart, before);
    }
    return true;
  }

  /**
   * Lets the stopped thread alone run injected code up to a breakpoint, and restores all of its registers. For use
   * inside {@link with}. `set`: initial registers. `stackTop`: the end of memory of ours for its stack, aligned to 64;
   * with a stack it calls functions of the program, which may wait for a lock. So the others run too, where no
   * breakpoint would stop them.
   * @throws RsptraceError `SCRATCH_UNAVAILABLE` if it stops elsewhere, `RSP_*`
   */
  async run(code: Addr, breakpoint: Addr, set: Readonly<Record<string, bigint>> = {}, stackTop?: Addr): Promise<void> {
    const session = this.session;
    const hart = stoppedHart(session);
    const { pc, sp } = this.arch;
    const place = { type: 0, address: breakpoint, kind: this.arch.breakpointKind(new Uint8Array(4)) } as const;
    const all = await registersOf(session, hart);
    const start = stackTop && (await leadToThread(session, hart, stackTop, all.register(sp) ?? 0n));
    if (stackTop !== undefined && start === undefined) throw unavailable('the stub does not write memory');
    const isAlone = start === undefined || session.breakpoints.length > 0;
    const batch = session.batch(hart);
    if (start !== undefined) batch.writeRegister(sp, start);
    for (const [name, value] of Object.entries({ ...set, [pc]: code, [this.#model.restart]: addr(-1) }))
      batch.writeRegister(name, value);
    const planted = batch.insertBreakpoint(place);
    await batch.send();
    const until = isAlone ? 0 : performance.now() + longestRunMs;
    const timer = setTimeout(() => void session.interrupt().catch(() => {}), longestRunMs);
    const stop = planted.value ? await this.#runTo(hart, breakpoint, until) : undefined;
    clearTimeout(timer);
    if (session.state.kind !== 'idle') throw unavailable('the process has ended');
    const after = await registersOf(session, hart);
    const back = session.batch(hart);
    back.removeBreakpoint(place);
    const restored = back.writeRegisters(all.hex);
    await back.send();
    if (!restored.value) throw unavailable('the stub does not write registers');
    await registersOf(session, hart);
    const came = stop?.kind === 'signal' && stop.hart === hart && after.register(pc) === breakpoint;
    if (!came) throw unavailable(`code of ours stopped at ${hex(after.register(pc) ?? 0n)}`);
  }

  /**
   * Past the probes of functions that injected code calls: such a call is none of the program. `until` that time the
   * other threads run too.
   */
  async #runTo(hart: string, end: Addr, until: number): Promise<StopReply> {
    const session = this.session;
    let signal: number | undefined;
    for (;;) {
      const stop = await session.resume({ kind: 'continue', ...(until > 0 ? { signal } : { hart }) });
      if (stop.kind === 'signal' && stop.hart !== hart && stop.reason !== 'exec' && performance.now() < until) {
        for (const each of await session.children.letGoAt(stop)) await session.insertBreakpoint(each);
        signal = programSignal(stop);
        continue;
      }
      if (stop.kind !== 'signal' || stop.hart !== hart) return stop;
      const at = (await registersOf(session, hart)).register(this.arch.pc);
      const met = session.breakpoints.filter(({ address }) => address === at);
      if (met.length === 0 || at === end) return stop;
      const stepped = await session.stepOver(hart, met);
      if (stepped.kind !== 'signal') return stepped;
    }
  }

  /**
   * Blocks signals meanwhile. Signals that came before they were blocked are sent again, and wait until the mask is
   * restored.
   */
  async #withoutSignals<T>(
    registers: RegisterBlock,
    held: number[],
    call: SystemCall,
    body: () => Promise<T>,
  ): Promise<T> {
    const session = this.session;
    const memory = session.memory();
    const masks = masksOf(registers.register(this.arch.sp) ?? 0n);
    const there = await memory.read(masks, 2 * maskBytes);
    if (there === undefined) throw unavailable('the stack of the thread cannot be read');
    const mask = new Uint8Array(2 * maskBytes);
    const view = new DataView(mask.buffer);
    for (const at of [0, maskBytes]) view.setBigUint64(at, blockedSignals, true);
    if (!(await memory.write(masks, mask))) throw unavailable('the stub does not write memory');
    const before = addOffset(masks, maskBytes);
    const blocked = await call('rt_sigprocmask', SIG_BLOCK, masks, before, maskBytes);
    try {
      if (blocked !== 0n) throw unavailable(`rt_sigprocmask answers ${blocked}`);
      await sendAgain(call, held);
      return await body();
    } finally {
      if (session.state.kind === 'idle') {
        if (blocked === 0n) await call('rt_sigprocmask', SIG_SETMASK, before, 0, maskBytes);
        await memory.write(masks, there);
      }
    }
  }

  async #call(
    hart: string,
    held: number[],
    name: LinuxCall,
    parameters: readonly (bigint | number)[],
  ): Promise<bigint> {
    const session = this.session;
    const model = this.#model;
    const { pc } = this.arch;
    await registersOf(session, hart);
    const batch = session.batch(hart);
    const values: [string, bigint][] = [
      [pc, this.#instruction],
      [model.number, BigInt(model.numbers[name])],
      [model.restart, addr(-1)],
    ];
    parameters.forEach((value, index) => {
      values.push([model.arguments[index] ?? '', BigInt.asUintN(64, BigInt(value))]);
    });
    const writes = values.map(([name, value]) => batch.writeRegister(name, value));
    await batch.send();
    if (!writes.every((reply) => reply.value)) throw unavailable('the stub does not write registers');
    for (let tries = 0; tries < stepTries; tries++) {
      const stop = await session.resume({ kind: 'step', hart });
      if (stop.kind !== 'signal' || stop.hart !== hart) {
        throw unavailable(`the process ended, or another thread stopped, in system call ${name}`);
      }
      const after = await registersOf(session, hart);
      if (stop.signal === SIGSYS) throw unavailable(`the process may not make system call ${name}`);
      // A SIGINT is how gdbserver interrupts: sent again, it would come to the program when that is left.
      if (![0, SIGINT, SIGTRAP].includes(stop.signal)) held.push(stop.signal);
      const at = after.register(pc);
      if (at === addOffset(this.#instruction, model.instruction.length)) {
        return BigInt.asIntN(64, after.register(model.result) ?? 0n);
      }
      if (at !== this.#instruction) throw unavailable(`a step over a system call led to ${hex(at ?? 0n)}`);
    }
    throw unavailable('so many signals come that no system call gets through');
  }

  async #restore(hart: string, before: RegisterBlock): Promise<void> {
    await registersOf(this.session, hart);
    const batch = this.session.batch(hart);
    const writes = this.#model.changes.map((name) => {
      const value = before.register(name);
      return value === undefined ? undefined : batch.writeRegister(name, value);
    });
    await batch.send();
    if (writes.some((reply) => reply?.value === false)) {
      throw new RsptraceError('RSP_WRITE_REFUSED', 'the stub refused to put the registers of a thread back', {
        hint: 'the program may go wrong from here on',
      });
    }
  }
}

/** The file of proc(5) of one thread, `pPID.TID`: each may have a filter and a mask of its own. */
async function statusOf(session: Session, hart: string): Promise<string | undefined> {
  const [process, thread] = hart
    .slice(1)
    .split('.')
    .map((part) => Number.parseInt(part, 16));
  const file = await session.remoteFile(`/proc/${process}/task/${thread}/status`);
  return file && new TextDecoder('latin1').decode(file);
}

/** Seccomp ends a process for a call that its filter does not know, and nobody can read the filter. */
function whyNoCalls(status: string | undefined): string | undefined {
  const mode = /^Seccomp:\s*(\d)/m.exec(status ?? '')?.[1];
  // A kernel without seccomp has no such line.
  if (mode === '0' || (status !== undefined && mode === undefined)) return undefined;
  if (mode === undefined) return 'whether a seccomp filter watches the process cannot be read';
  return 'a seccomp filter watches the system calls of the process, and one that it does not know may end it';
}

/**
 * The signal that has stopped it. Not one by which a server stops a process that is attached to; nor that of an
 * instruction, which raises it again.
 */
function signalsOf({ state, features }: Session): number[] {
  const signal = state.kind === 'idle' ? programSignal(state.stop) : undefined;
  const isOwn = signal === features.signals.stop || (blockedSignals & (1n << BigInt((signal ?? 1) - 1))) === 0n;
  return signal === undefined || isOwn ? [] : [signal];
}

async function sendAgain(call: SystemCall, held: readonly number[]): Promise<void> {
  if (held.length === 0) return;
  const thread = await call('gettid');
  const process = await call('getpid');
  for (const signal of held) await call('tgkill', process, thread, signal);
}

/** The errno of a failed result, or undefined. */
export function errnoOf(result: bigint): number | undefined {
  return result < 0n && result >= -4095n ? Number(-result) : undefined;
}

export function unavailable(why: string): RsptraceError {
  return new RsptraceError('SCRATCH_UNAVAILABLE', `no memory can be had in the target: ${why}`);
}

function stoppedHart(session: Session): string {
  const { state } = session;
  const hart = state.kind === 'idle' && state.stop.kind === 'signal' ? state.stop.hart : undefined;
  if (hart === undefined) throw unavailable('the stub does not say which thread stands still');
  return hart;
}
