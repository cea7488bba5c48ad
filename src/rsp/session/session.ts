import { setTimeout as sleep } from 'node:timers/promises';
import { hex } from '../../base/addr.js';
import { messageOf, RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { hexToBytes } from '../wire/hex.js';
import type { Link } from '../wire/link.js';
import { retry } from '../wire/retry.js';
import { Batch, type BatchContext, raw } from './batch.js';
import type { Breakpoint } from './batch-requests.js';
import type { StubFeatures } from './features.js';
import type { Ask, Greeting } from './handshake.js';
import { type MemoryRegion, parseMemoryMap } from './memory-map.js';
import { packets } from './packets.js';
import { PagedMemory, type TargetMemory } from './paged-memory.js';
import { RemoteFile, readRemoteFile } from './remote-files.js';
import { ANY_HART, type Resume, type RunControl, type SessionState } from './run-control.js';
import { liftedForStep, stepWithout } from './step-over.js';
import { pidOf, programSignal, type StopReason, type StopReply } from './stop-reply.js';
import { type InterruptWay, interruptIsPending, interruptWay, processOf, stopIsPending } from './stop-signals.js';
import { identifyStub, type Stub } from './stub.js';
import type { TargetDescription } from './target-description.js';
import { readThreads } from './threads.js';
import { readObject, readObjectBytes } from './transfer.js';

/** A thread of the stub: a vCPU of an emulator, a core behind a probe, a thread of a process. */
export interface Hart {
  /** As the stub spells it: `p01.01`. */
  readonly id: string;
  /** What the stub says of it: `CPU#0 [halted ]`. */
  readonly name?: string;
}

/** What may come before a SIGINT that is pending: breakpoints that other threads had hit, signals. */
const STOPS_BEFORE_INTERRUPT = 1000;
/** How long threads run that are to take their signals. */
const MOMENT_MS = 2;

/** A connection to one stub. Made by `connect`. */
export class Session implements AsyncDisposable {
  readonly features: StubFeatures;
  readonly target: TargetDescription;
  /**
   * Called before the child of a fork is let go, while it stands: takes out of it what it has inherited besides
   * breakpoints.
   */
  beforeChildGoes: ((child: string) => Promise<void>) | undefined;
  /** True when the stub was attached to a program that ran already; undefined where it does not say. */
  readonly attached: boolean | undefined;
  /** How the target is stopped while it runs. */
  interruptWay: InterruptWay = 'stub';
  readonly #link: Link;
  readonly #ask: Ask;
  readonly #control: RunControl;
  readonly #logger: Logger;
  readonly #context: BatchContext;
  readonly #inserted = new Map<string, Breakpoint>();
  /** Processes seen, for D and vKill. */
  readonly #pids = new Set<string>();
  #leaving: Promise<void> | undefined;
  #hasPhysicalMemory: boolean | undefined;
  #stub: Promise<Stub> | undefined;

  constructor(link: Link, control: RunControl, greeting: Greeting, logger: Logger) {
    this.features = greeting.features;
    this.target = greeting.target;
    this.attached = greeting.attached;
    this.#link = link;
    this.#ask = Object.assign((packet: string) => this.#answer(packet), { timeoutMs: link.timeoutMs });
    this.#control = control;
    this.#logger = logger;
    this.#context = { control, features: greeting.features, target: greeting.target, inserted: this.#inserted };
    control.features = greeting.features;
    control.begin(greeting.stop);
    for (const id of greeting.harts) this.#see(id);
    if (greeting.stop.kind === 'signal') this.#see(greeting.stop.hart);
  }

  get state(): SessionState {
    return this.#control.state;
  }

  /** What is inserted now, in the order of insertion. */
  get breakpoints(): readonly Breakpoint[] {
    return [...this.#inserted.values()];
  }

  /** Requests for one hart (undefined: the one that stopped), sent together. */
  batch(hart?: string): Batch {
    return new Batch(this.#context, hart);
  }

  /** All harts; a stub without any has one, with the id `0`. */
  async harts(): Promise<Hart[]> {
    const ids = await readThreads(this.#ask, this.features.transfer.has('threads'), this.features.packetSize);
    if (ids.length === 0) return [{ id: this.#control.stoppedHart ?? ANY_HART }];
    const batch = this.batch(ANY_HART);
    const names = ids.map((id) => batch[raw](packets.threadExtraInfo(id)));
    await batch.send();
    return ids.map((id, index) => {
      this.#see(id);
      const bytes = hexToBytes(names[index]?.value ?? '');
      const name = bytes === undefined ? '' : new TextDecoder().decode(bytes);
      return name === '' ? { id } : { id, name };
    });
  }

  /**
   * Sets the target going; resolves with the stop that ends the run (`gone` when the connection ends first). Rejects
   * with `RSP_BAD_STATE` when it runs already, `RSP_PROTOCOL` when the stub answers with something else.
   */
  resume(how: Resume = { kind: 'continue' }): Promise<StopReply> {
    return this.batch().resume(how);
  }

  /**
   * Stops the target; resolves with the stop, as the pending resume does. That may be a breakpoint that was hit in the
   * same moment: gdbserver then stops once more with signal 2 after the next resume. A target that stands already gives
   * the stop that is known.
   */
  interrupt(): Promise<StopReply> {
    return this.#control.interrupt();
  }

  /** Finds out how, where the stub is gdbserver; the target stands. */
  async findInterruptWay(): Promise<void> {
    const pid = Number.parseInt(pidOf(this.#control.stoppedHart) ?? '', 16);
    if (Number.isNaN(pid) || (await this.stub()).name !== 'gdbserver') return;
    this.interruptWay = await interruptWay((path) => this.remoteFile(path), pid);
    if (this.interruptWay === 'signal') this.#control.interruptInstead = () => void process.kill(pid, 'SIGINT');
  }

  /**
   * Runs one instruction of one hart that stands at inserted breakpoints, or before an access that is watched. A step
   * may come back without having executed anything (an interrupt was pending, a watchpoint that is not among these):
   * compare the pc. With a signal it is the first instruction of the handler, where there is any.
   */
  stepOver(hart: string, over: Breakpoint | readonly Breakpoint[], signal?: number): Promise<StopReply> {
    const step: Resume = { kind: 'step', hart, ...(signal === undefined ? {} : { signal }) };
    const breakpoints = 'type' in over ? [over] : over;
    return stepWithout(this, liftedForStep(breakpoints, this.#inserted, this.features), hart, step);
  }

  /** Memory as `hart` sees it (undefined: the one that stopped), of any length, page by page. */
  memory(hart?: string): TargetMemory {
    return new PagedMemory(this.features.packetSize, () => this.batch(hart));
  }

  /**
   * Memory by physical address, past all page tables; undefined where the stub has no such mode (QEMU's system
   * emulators have). QEMU answers zeros for what is no memory, takes writes to ROM and to nowhere without keeping them,
   * and gives flash commands.
   */
  async physicalMemory(): Promise<TargetMemory | undefined> {
    if (this.#hasPhysicalMemory === undefined) {
      const batch = this.batch(ANY_HART);
      const replies = [true, false].map((on) => batch[raw](packets.qemuPhysicalMemory(on)));
      await batch.send();
      this.#hasPhysicalMemory = replies.every((reply) => reply.value === 'OK');
    }
    if (!this.#hasPhysicalMemory) return undefined;
    // The mode is the stub's, not the batch's: it is turned on and off in the same write.
    const begin = (): Batch => {
      const batch = this.batch(ANY_HART);
      batch[raw](packets.qemuPhysicalMemory(true));
      return batch;
    };
    const end = (batch: Batch): void => void batch[raw](packets.qemuPhysicalMemory(false));
    return new PagedMemory(this.features.packetSize, begin, end);
  }

  /** What the stub says of the target's memory; empty where it says nothing. Throws `RSP_BAD_XML`. */
  async memoryRegions(): Promise<readonly MemoryRegion[]> {
    if (!this.features.transfer.has('memory-map')) return [];
    const text = await readObject(this.#ask, 'memory-map', '', this.features.packetSize);
    return text === undefined ? [] : parseMemoryMap(text);
  }

  /**
   * Which server answers, found out once. OpenOCD alone is asked for it, when this is first called; of the others the
   * handshake has told.
   */
  stub(): Promise<Stub> {
    this.#stub ??= identifyStub(this.features, (command) => this.monitor(command));
    return this.#stub;
  }

  /**
   * Has a Linux process stop at the entry and the return of these system calls; empty: of none. Only where the stub has
   * `QCatchSyscalls`.
   */
  async catchSystemCalls(numbers: readonly number[]): Promise<void> {
    await this.#ask(packets.catchSystemCalls(numbers));
  }

  /** Has the stub hand signals to the program without a stop for each, where it can. */
  async passSignals(): Promise<void> {
    if (this.features.supported.get('QPassSignals') === '+') await this.#ask(packets.passSignals);
  }

  /**
   * Lets the child of a process that has just forked (`child` of a stop) run on by itself, without the breakpoints that
   * it has inherited. The parent stays as it is.
   */
  async letChildGo(child: string): Promise<void> {
    await this.beforeChildGoes?.(child);
    await this.#letGo(child);
  }

  /**
   * As {@link letChildGo}, of a vfork. The child runs in its parent's memory until `vforkdone`, so the parent's trap
   * instructions have to come out, too.
   * @returns what came out
   */
  async letVforkChildGo(child: string): Promise<readonly Breakpoint[]> {
    const written = this.breakpoints.filter(({ type }) => type === 0);
    const batch = this.batch();
    for (const breakpoint of written) batch.removeBreakpoint(breakpoint);
    await batch.send();
    await this.#letGo(child);
    return written;
  }

  async #letGo(child: string): Promise<void> {
    const batch = this.batch(child);
    for (const { type, address, kind } of this.breakpoints) batch[raw](packets.removeBreakpoint(type, address, kind));
    await batch.send();
    const answer = await this.#ask(packets.detach(pidOf(child)));
    if (answer !== 'OK') this.#logger.warn({ child, answer }, 'the child of a fork could not be let go');
  }

  async #letGoOf(reason: StopReason | undefined, child: string | undefined): Promise<void> {
    if (child === undefined) return;
    if (reason === 'fork') await this.letChildGo(child);
    if (reason === 'vfork') await this.letVforkChildGo(child);
  }

  /** The target runs another program now: what was inserted into the old one is gone with it. */
  forgetBreakpoints(): void {
    this.#inserted.clear();
  }

  /** An object that qXfer reads (`auxv`); undefined where the stub has none of that name. */
  async object(name: string, annex = ''): Promise<Uint8Array | undefined> {
    if (!this.features.transfer.has(name)) return undefined;
    return readObjectBytes(this.#ask, name, annex, this.features.packetSize);
  }

  /** A file on the stub's machine, whole; undefined where the stub reads no files or cannot read this one. */
  async remoteFile(path: string): Promise<Uint8Array | undefined> {
    if (!this.features.vPackets) return undefined;
    return readRemoteFile(this.#ask, path, this.features.packetSize);
  }

  /** The same, to be read piece by piece. */
  async openRemoteFile(path: string): Promise<RemoteFile | undefined> {
    return this.features.vPackets ? RemoteFile.open(() => this.batch(), path, this.features.packetSize) : undefined;
  }

  /** Runs a command of the stub's own; what it prints, or undefined where the stub refuses. */
  async monitor(command: string): Promise<string | undefined> {
    const batch = this.batch(ANY_HART);
    const reply = batch.monitor(command);
    await batch.send();
    return reply.value;
  }

  async insertBreakpoint(breakpoint: Breakpoint): Promise<boolean> {
    const batch = this.batch();
    const reply = batch.insertBreakpoint(breakpoint);
    await batch.send();
    return reply.value;
  }

  async removeBreakpoint(breakpoint: Breakpoint): Promise<boolean> {
    const batch = this.batch();
    const reply = batch.removeBreakpoint(breakpoint);
    await batch.send();
    return reply.value;
  }

  /**
   * Leaves the target as it was: stops it if it runs, removes every breakpoint, lets it run on, closes. Harmless when
   * called again, and when the session has ended.
   */
  detach(): Promise<void> {
    this.#leaving ??= this.#leave(async () => {
      const { state } = this;
      if (state.kind === 'idle' && state.stop.kind === 'signal') {
        const { reason, child } = state.stop;
        await this.#letGoOf(reason, child);
        if (reason === 'exec') this.forgetBreakpoints();
      }
      await retry(this, (again) => this.#removeAll(again));
      await this.#takeInterruptBack();
      await this.#takeStopsBack();
      if (this.state.kind !== 'idle') return;
      // After a detach OpenOCD leaves the target halted.
      if ((await this.stub()).name === 'openocd') await this.monitor('resume');
      await retry(this, async () => {
        const last = this.batch(ANY_HART);
        const said = this.#processes().map((pid) => last[raw](packets.detach(pid)));
        await last.send();
        for (const reply of said)
          if (reply.value !== 'OK') this.#logger.warn({ answer: reply.value }, 'detaching failed');
      });
    });
    return this.#leaving;
  }

  /** Takes every breakpoint out; the target stands as before. */
  clearBreakpoints(): Promise<void> {
    return retry(this, (again) => this.#removeAll(again));
  }

  /** Takes every breakpoint out. `again`: stubs refuse to remove what an earlier try has removed. */
  async #removeAll(again: boolean): Promise<void> {
    const batch = this.batch(ANY_HART);
    const removed = this.breakpoints.map((one) => ({ address: hex(one.address), reply: batch.removeBreakpoint(one) }));
    await batch.send();
    for (const { address, reply } of removed)
      if (!reply.value && !again)
        this.#logger.warn({ address, error: reply.errorText }, 'a breakpoint was not taken out');
  }

  /** Ends the target: an emulator exits, a process is killed. Harmless when called again. */
  kill(): Promise<void> {
    this.#leaving ??= this.#leave(async () => {
      const batch = this.batch(ANY_HART);
      for (const pid of this.#processes()) batch[raw](packets.kill(pid));
      // The answer may be no more than the end of the connection.
      await batch.send().catch((error: unknown) => {
        if (!(error instanceof RsptraceError) || error.code !== 'RSP_CLOSED') throw error;
      });
    });
    return this.#leaving;
  }

  /** Closes the connection, whatever the target does: QEMU leaves it stopped, with its breakpoints. */
  close(): void {
    this.#link.close();
  }

  /** Detaches; what goes wrong is logged, so that it does not hide the error that led here. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.detach();
    } catch (error) {
      this.#logger.warn({ error: messageOf(error) }, 'the target could not be left in order');
    } finally {
      this.close();
    }
  }

  /**
   * gdbserver interrupts by a SIGINT to the process. When a breakpoint was hit in the same moment, the signal is still
   * pending and would end a program that is left now. So the target runs, without breakpoints, until it has come.
   */
  async #takeInterruptBack(): Promise<void> {
    for (let stops = 0; stops < STOPS_BEFORE_INTERRUPT; stops++) {
      const { state } = this;
      if (state.kind !== 'idle' || state.stop.kind !== 'signal' || !(await this.#isInterruptPending())) return;
      const { reason, child } = state.stop;
      await this.#letGoOf(reason, child);
      // A signal that came instead is the program's; a SIGINT is an earlier interrupt of ours.
      const signal = programSignal(state.stop);
      await this.resume({ kind: 'continue', ...(signal === undefined ? {} : { signal }) });
    }
  }

  async #isInterruptPending(): Promise<boolean> {
    const pid = this.#control.wasInterrupted ? pidOf(this.#control.stoppedHart) : undefined;
    return pid !== undefined && interruptIsPending((path) => this.remoteFile(path), Number.parseInt(pid, 16));
  }

  /**
   * lldb-server stops threads by a SIGSTOP each, which it takes back from those alone that run. No breakpoint is
   * inserted any more.
   */
  async #takeStopsBack(): Promise<void> {
    if (this.state.kind !== 'idle' || !this.features.supported.has('native-signals')) return;
    const pid = processOf(await this.#ask(packets.processInfo));
    if (pid === undefined) return;
    for (let tries = 0; tries < STOPS_BEFORE_INTERRUPT && this.state.kind === 'idle'; tries++) {
      const threads = (await this.harts()).map(({ id }) => Number.parseInt(id, 16));
      if (!(await stopIsPending((path) => this.remoteFile(path), pid, threads))) return;
      const stop = this.resume();
      await sleep(MOMENT_MS);
      await this.interrupt();
      await stop;
    }
  }

  async #leave(say: () => Promise<void>): Promise<void> {
    try {
      this.#control.leaving();
      if (this.state.kind === 'running' || this.state.kind === 'interrupting') {
        await this.interrupt().catch((error: unknown) => {
          // A target that may stand all the same is left in order, as far as it answers.
          if (this.state.kind !== 'idle') throw error;
        });
      }
      if (this.state.kind === 'idle') await say();
    } finally {
      this.close();
    }
  }

  async #answer(packet: string): Promise<string> {
    const batch = this.batch(ANY_HART);
    const reply = batch[raw](packet);
    await batch.send();
    return reply.value;
  }

  #processes(): (string | undefined)[] {
    return this.features.multiprocess && this.#pids.size > 0 ? [...this.#pids] : [undefined];
  }

  #see(hart: string | undefined): void {
    const pid = pidOf(hart);
    if (pid !== undefined) this.#pids.add(pid);
  }
}
