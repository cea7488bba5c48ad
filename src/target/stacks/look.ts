import type { Architecture, Privilege } from '../../arch/index.js';
import { type Addr, addr, distance } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import { entriesOf, textOf } from '../../base/proc.js';
import { type Batch, type Hart, isProcess, type Session } from '../../rsp/index.js';
import type { Stack, StackOptions, StackPiece } from '../unwind/index.js';
import { askRegisters, type HartStack, hartStack } from './hart-stack.js';
import type { LoadedCode } from './loaded-code.js';

/** What one hart was doing when the target was stopped. */
export interface HartLook extends Pick<HartStack, 'stack' | 'firmware' | 'other' | 'program'> {
  readonly hart: Hart;
  readonly pc: bigint | undefined;
  /** Undefined where the architecture does not say. */
  readonly privilege: Privilege | undefined;
  /** The physical address of its page tables' root; undefined without paging. */
  readonly root: bigint | undefined;
  /** It waits for an interrupt; a thread of a process waits in a system call. */
  readonly isIdle: boolean;
  /** A thread that runs in a system call: which that is, as far as it is known. */
  readonly inKernel?: { readonly call: string | undefined } | undefined;
}

/** A hart that stands, with the registers that its stack is walked with. */
interface Standing {
  readonly hart: Hart;
  readonly registers: RegisterReader;
  /** The stack, if it lies where it was expected. */
  readonly ahead: StackPiece | undefined;
}

/** Where a hart's stack is expected: from the deepest place of late, and a little below, to where its walk ended. */
interface Expected {
  readonly start: Addr;
  readonly end: Addr;
  /** How much of it is read. */
  readonly length: number;
}

/** How far below the stack pointer of the last look. */
const DEEPER = 1024;
/** Above the stack pointer, if no frame is found: what the search for a caller reads. */
const WITHOUT = 64;
const MOST = 8192;

interface LookOptions extends StackOptions {
  /** Stacks of harts that are idle are wanted, too. */
  readonly walksIdle: boolean;
}

/** What is said of an idle hart if its stack is not wanted. */
const idle = {
  stack: { frames: [], end: { reason: 'no-unwinder', complete: false } },
  firmware: undefined,
  other: undefined,
  privilege: undefined,
  root: undefined,
  isIdle: true,
} as const;

/** Looks at every hart of a target that stands. */
export class Looks {
  readonly #session: Session;
  readonly #arch: Architecture;
  readonly #code: LoadedCode;
  readonly #options: LookOptions;
  /** Those of the last look. */
  #harts: readonly string[] | undefined;
  readonly #ownPages = new Set<string>();
  /** By hart: what is read together with its registers. */
  readonly #expected = new Map<string, Expected>();
  readonly #kernelTime = new KernelTime();
  /** Whether a system call ends there: code does not change, and threads wait at the same few places. */
  readonly #behindCall = new Map<Addr, boolean>();

  constructor(session: Session, arch: Architecture, code: LoadedCode, options: LookOptions) {
    this.#session = session;
    this.#arch = arch;
    this.#code = code;
    this.#options = options;
  }

  /** The target is about to be interrupted. Once it stands nothing says which threads ran in the kernel. */
  interrupting(): void {
    const pid = this.#session.localProcess;
    if (pid !== undefined) this.#kernelTime.read(pid);
  }

  /** `alsoAsk` adds what else is to be read of the target in the same write. */
  async all(alsoAsk: (batch: Batch) => void = () => {}): Promise<HartLook[]> {
    const stood = isProcess(this.#session.features) ? await this.#threads(alsoAsk) : await this.#machine(alsoAsk);
    const looks = await Promise.all(stood.map((one) => this.#look(one)));
    this.#kernelTime.forget();
    if (looks.some(({ stack }) => stack.end.reason === 'outside-code')) await this.#code.strayed();
    return looks;
  }

  /** The registers of threads, which come and go: those of the last look are asked together with the list. */
  async #threads(alsoAsk: (batch: Batch) => void): Promise<Standing[]> {
    const also = this.#session.batch();
    alsoAsk(also);
    const sent = also.send();
    const list = this.#session.hartIds();
    const guessed = new Map((this.#harts ?? []).map((id) => [id, this.#ask(id, () => {})]));
    // A stub refuses one that is gone. Where the link ends, all of them fail, and the list says so.
    for (const one of [sent, ...[...guessed.values()].map((each) => each.sent)]) one.catch(() => {});
    this.#harts = await list;
    const asked = this.#harts.map((id) => ({ hart: { id }, ...(guessed.get(id) ?? this.#ask(id, () => {})) }));
    await Promise.all([sent, ...asked.map((one) => one.sent)]);
    return asked.map(({ hart, registers, ahead }) => ({ hart, registers: registers.value, ahead: ahead() }));
  }

  /** Those of a machine's harts, which stay: all in one answer. Their names say whether they are halted. */
  async #machine(alsoAsk: (batch: Batch) => void): Promise<Standing[]> {
    this.#harts ??= await this.#session.hartIds();
    const asked = this.#harts.map((id, index) => ({
      id,
      ...this.#ask(id, (batch) => {
        if (index === 0) alsoAsk(batch);
        return batch.readHartName(id);
      }),
    }));
    await Promise.all(asked.map((one) => one.sent));
    return asked.map(({ id, registers, ahead, more: { value: name } }) => ({
      hart: name === undefined ? { id } : { id, name },
      registers: registers.value,
      ahead: ahead(),
    }));
  }

  #ask<T>(hart: string, ask: (batch: Batch) => T) {
    const batch = this.#session.batch(hart);
    const more = ask(batch);
    const registers = askRegisters(batch, this.#arch, this.#code.stacks);
    const expected = this.#expected.get(hart);
    const read = expected && batch.readMemory(expected.start, expected.length);
    const ahead = (): StackPiece | undefined => {
      const bytes = read?.value;
      return expected && bytes && { address: expected.start, bytes };
    };
    return { more, registers, ahead, sent: batch.send() };
  }

  /** What the next look reads of this hart's stack together with its registers. */
  #expect(hart: string, registers: RegisterReader, { frames }: Stack): void {
    const sp = registers.register(this.#arch.sp);
    const last = this.#expected.get(hart);
    this.#expected.delete(hart);
    if (sp === undefined || frames.length === 0) return;
    const outermost = frames.findLast(({ cfa }) => cfa !== undefined)?.cfa ?? addr(sp + BigInt(WITHOUT));
    const deeper = addr(sp - BigInt(DEEPER));
    const isSame =
      last?.end === outermost && distance(last.start, deeper) >= 0 && distance(last.start, outermost) <= MOST;
    const start = isSame ? last.start : deeper;
    const length = Math.min(distance(start, outermost), MOST);
    if (length > 0) this.#expected.set(hart, { start, end: outermost, length });
  }

  async #look({ hart, registers: given, ahead }: Standing): Promise<HartLook> {
    const halted = this.#isHalted(hart);
    const inCall = halted === undefined && (await this.#isInSystemCall(hart, given.register(this.#arch.pc)));
    const inKernel = inCall && this.#kernelTime.runs(hart) ? { call: this.#callOf(given) } : undefined;
    const isIdle = halted ?? (inCall && !inKernel);
    if (isIdle && !this.#options.walksIdle) {
      this.#expected.delete(hart.id);
      return { ...idle, hart, pc: given.register(this.#arch.pc), program: this.#code.stacks.elf };
    }
    const { others } = this.#code;
    const options = { ...this.#options, registers: given, ahead, ownPages: this.#ownPages, others };
    const found = await hartStack(this.#session, hart.id, this.#arch, this.#code.stacks, options);
    const { stack, firmware, other, registers, program } = found;
    if (firmware === undefined) this.#expect(hart.id, given, stack);
    else this.#expected.delete(hart.id);
    const pc = registers.register(this.#arch.pc);
    const standing = this.#arch.privilege?.standing(registers);
    const privilege = firmware === undefined ? standing?.privilege : 'firmware';
    return {
      hart,
      pc,
      stack,
      firmware,
      program,
      other,
      privilege: isProcess(this.#session.features) ? (inKernel ? 'kernel' : 'user') : privilege,
      root: standing?.root,
      isIdle,
      inKernel,
    };
  }

  /** The name of the system call that a thread is in. */
  #callOf(registers: RegisterReader): string | undefined {
    const { atCall, callName } = this.#arch.linux ?? {};
    const number = atCall && registers.register(atCall.number);
    return number === undefined ? undefined : callName?.(Number(number));
  }

  /** QEMU says so of a hart; undefined for a thread of a process. */
  #isHalted({ name }: Hart): boolean | undefined {
    return isProcess(this.#session.features) ? undefined : /\[halted\b/.test(name ?? '');
  }

  /** A stopped thread stands behind the instruction by which it went into the kernel, as long as it is there. */
  async #isInSystemCall({ id }: Hart, pc: bigint | undefined): Promise<boolean> {
    const instruction = this.#arch.linux?.systemCalls?.instruction;
    if (pc === undefined || instruction === undefined) return false;
    const at = addr(pc);
    let known = this.#behindCall.get(at);
    if (known === undefined) {
      const before = addr(pc - BigInt(instruction.length));
      const bytes =
        this.#code.stacks.codeAt(before, instruction.length) ??
        (await this.#session.memory(id).read(before, instruction.length));
      known = bytes !== undefined && instruction.every((byte, index) => bytes[index] === byte);
      this.#behindCall.set(at, known);
    }
    return known;
  }
}

/** A stop costs a thread that waits in the kernel less than this: it wakes, stops, and waits again. In nanoseconds. */
const LEAST_NS = 100_000;

/**
 * Which threads run in the kernel. Such a one is runnable before the interrupt. Then it stands in a system call, and has
 * not waited: it has given up its processor (proc(5), voluntary_ctxt_switches) for the stop alone.
 */
class KernelTime {
  /** By thread: how long it has had a processor, in nanoseconds. */
  #had = new Map<string, number>();
  /** Of runnable ones: how often they had given it up. */
  readonly #switches = new Map<number, number>();
  #pid = 0;

  /** Called before each interrupt: reads it of every thread. */
  read(pid: number): void {
    this.#pid = pid;
    const had = new Map<string, number>();
    for (const thread of entriesOf(`/proc/${pid}/task`)) {
      // The time on a processor comes first (sched-stats.rst of Linux); it is missing where the kernel keeps none.
      const text = textOf(`/proc/${pid}/task/${thread}/schedstat`);
      const nanos = text === '' ? Number.POSITIVE_INFINITY : Number.parseInt(text, 10);
      had.set(thread, nanos);
      const before = this.#had.get(thread) ?? 0;
      if (text !== '' && nanos - before < LEAST_NS) continue;
      const { isRunnable, switches } = this.#status(thread);
      if (isRunnable) this.#switches.set(Number(thread), switches);
    }
    this.#had = had;
  }

  /** The target has gone on. */
  forget(): void {
    this.#switches.clear();
  }

  runs({ id }: Hart): boolean {
    const thread = Number.parseInt(/[^.]*$/.exec(id)?.[0] ?? '', 16);
    const before = this.#switches.get(thread);
    return before !== undefined && this.#status(thread).switches <= before + 1;
  }

  #status(thread: string | number): { readonly isRunnable: boolean; readonly switches: number } {
    const text = textOf(`/proc/${this.#pid}/task/${thread}/status`);
    const switches = /^voluntary_ctxt_switches:\s*(\d+)/m.exec(text)?.[1];
    return { isRunnable: /^State:\s*R/m.test(text), switches: Number(switches) };
  }
}
