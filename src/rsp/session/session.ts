import type { Refusal } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import type { WireRecorder } from '../wire/wire-log.js';
import { Batch, type BatchContext, raw } from './batch.js';
import type { Breakpoint } from './batch-requests.js';
import type { StubFeatures } from './features.js';
import { ForkedChildren } from './forked-children.js';
import type { Ask, Greeting } from './handshake.js';
import { ANY_HART, type Resume } from './hart-requests.js';
import { Leaving } from './leaving.js';
import { type MemoryRegion, parseMemoryMap } from './memory-map.js';
import { packets, type SystemCalls } from './packets.js';
import { PagedMemory, type TargetMemory } from './paged-memory.js';
import { ProcessSignals } from './process-signals.js';
import { RemoteFile, readRemoteFile } from './remote-files.js';
import type { Reply } from './request.js';
import type { RunControl, SessionState, Standing } from './run-control.js';
import { liftedForStep, stepWithout } from './step-over.js';
import type { StopReply } from './stop-reply.js';
import { readHere } from './stop-signals.js';
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

/** A connection to one stub. Made by `connect`. */
export class Session implements AsyncDisposable {
  /** True if the stub was attached to a running program; undefined if it does not say. */
  readonly attached: boolean | undefined;
  /** Children of forks. */
  readonly children: ForkedChildren;
  #filesAreHere = false;
  readonly #context: BatchContext;
  readonly #ask: Ask;
  readonly #signals: ProcessSignals;
  readonly #leaving: Leaving;
  #hasPhysicalMemory: boolean | undefined;
  #stub: Promise<Stub> | undefined;
  readonly #peer: ((name: string) => number | Refusal) | undefined;

  /** `peer`: finds the process at the other end of the connection. */
  constructor(
    control: RunControl,
    greeting: Greeting,
    logger: Logger,
    peer?: ((name: string) => number | Refusal) | undefined,
  ) {
    this.#peer = peer;
    this.attached = greeting.attached;
    this.#ask = Object.assign((packet: string) => this.#one((batch) => batch[raw](packet), ANY_HART), {
      timeoutMs: control.link.timeoutMs,
    });
    const { features, target, clusters } = greeting;
    this.#context = { control, features, target, clusters, inserted: new Map() };
    this.#signals = new ProcessSignals(this, control, this.#ask);
    this.children = new ForkedChildren(this, logger);
    this.#leaving = new Leaving(this, control, this.#signals, logger);
    control.begin(greeting);
    for (const id of greeting.harts) this.#leaving.see(id);
    if (greeting.stop.kind === 'signal') this.#leaving.see(greeting.stop.hart);
  }

  get features(): StubFeatures {
    return this.#context.features;
  }

  get target(): TargetDescription {
    return this.#context.target;
  }

  get #control(): RunControl {
    return this.#context.control;
  }

  get state(): SessionState {
    return this.#control.state;
  }

  /** What is inserted now, in the order of insertion. */
  get breakpoints(): readonly Breakpoint[] {
    return [...this.#context.inserted.values()];
  }

  /** Requests for one hart (undefined: the one that stopped), sent together. */
  batch(hart?: string): Batch {
    return new Batch(this.#context, hart);
  }

  /** All harts; a stub without any has one, with the id `0`. */
  async harts(): Promise<Hart[]> {
    const threads = await this.#threads();
    const ids = [...threads.keys()];
    if (ids.length === 0) return [{ id: this.#control.stoppedHart ?? ANY_HART }];
    const batch = this.batch(ANY_HART);
    const names = ids.map((id) => batch.readHartName(id));
    await batch.send();
    return ids.map((id, index) => {
      const name = names[index]?.value ?? threads.get(id);
      return name === undefined ? { id } : { id, name };
    });
  }

  /** The same without what they are called: one question less. */
  async hartIds(): Promise<string[]> {
    const ids = [...(await this.#threads()).keys()];
    return ids.length === 0 ? [this.#control.stoppedHart ?? ANY_HART] : ids;
  }

  async #threads(): Promise<Map<string, string | undefined>> {
    const threads = await readThreads(this.#ask, this.features.transfer.has('threads'), this.features.packetSize);
    for (const id of threads.keys()) this.#leaving.see(id);
    return threads;
  }

  /**
   * Resumes the target; resolves with the stop that ends the run (`gone` if the connection ends first). Rejects with
   * `RSP_BAD_STATE` if it runs already, `RSP_PROTOCOL` if the stub answers with something else.
   */
  resume(how: Resume = { kind: 'continue' }): Promise<StopReply> {
    return this.batch().resume(how);
  }

  /**
   * Stops the target; resolves with the stop, as the pending resume does. That may be a breakpoint that was hit in
   * the same moment: then gdbserver stops once more with signal 2 after the next resume. For a stopped target the
   * last stop is returned.
   */
  interrupt(): Promise<StopReply> {
    return this.#control.interrupt();
  }

  /** An interrupt of ours may have made the last stop. */
  get wasInterrupted(): boolean {
    return this.#control.interrupts.broughtStop === true;
  }

  /**
   * Why {@link interrupt} must not be used on the target: it does not reach it, or would end it. Only a process under a
   * gdbserver elsewhere has a reason.
   */
  whyUninterruptible(): Promise<string | undefined> {
    return this.#signals.whyUninterruptible();
  }

  /**
   * Finds out whether a gdbserver of this machine traces the process. Interrupts are a SIGSTOP to it then, which is
   * written to `wire` as the packet that it stands for. Sends no packet.
   */
  findLocalProcess(wire?: WireRecorder): Promise<void> {
    return this.#signals.findLocalProcess(wire);
  }

  /** Files are read past the stub where that is on this machine. A wire that is recorded has to have them itself. */
  readFilesHere(): void {
    this.#filesAreHere = true;
  }

  get standing(): Standing {
    return this.#control.standing;
  }

  /** The process, if a gdbserver of this machine traces it. */
  get localProcess(): number | undefined {
    return this.#signals.localProcess;
  }

  /** The same, if its files are read past the stub: not where the wire is recorded. */
  get processHere(): number | undefined {
    return this.#filesAreHere ? this.localProcess : undefined;
  }

  /**
   * The process of this machine that answers, or why it is not known. Undefined if the wire is recorded or played
   * back: what passes next to it cannot be. `name`: what its name probably has.
   */
  serverProcess(name: string): number | Refusal | undefined {
    return this.#peer?.(name);
  }

  /**
   * Runs one instruction of one hart at inserted breakpoints, or before a watched access. A step may return without
   * having run anything (an interrupt was pending, or a watchpoint that is not among these), so compare the pc. With
   * a signal it runs the handler's first instruction, if there is a handler.
   */
  stepOver(hart: string, over: Breakpoint | readonly Breakpoint[], signal?: number): Promise<StopReply> {
    const step: Resume = { kind: 'step', hart, signal };
    const breakpoints = 'type' in over ? [over] : over;
    return stepWithout(this, liftedForStep(breakpoints, this.#context.inserted, this.features), hart, step);
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

  /** The stub's description of the target's memory; empty if it has none. Throws `RSP_BAD_XML`. */
  async memoryRegions(): Promise<readonly MemoryRegion[]> {
    if (!this.features.transfer.has('memory-map')) return [];
    const text = await readObject(this.#ask, 'memory-map', '', this.features.packetSize);
    return text === undefined ? [] : parseMemoryMap(text);
  }

  /**
   * Which server answers; found out once. Only OpenOCD is asked for it, at the first call; the handshake has
   * identified the others.
   */
  stub(): Promise<Stub> {
    this.#stub ??= identifyStub(this.features, (command) => this.monitor(command));
    return this.#stub;
  }

  /**
   * Makes a Linux process stop at the entry and the return of these system calls; an empty list: at none. Only if the
   * stub has `QCatchSyscalls`.
   */
  async catchSystemCalls(numbers: SystemCalls): Promise<void> {
    await this.#ask(packets.catchSystemCalls(numbers));
  }

  /** Makes the stub forward signals to the program without a stop for each, if it can. */
  async passSignals(): Promise<void> {
    if (this.features.supported.get('QPassSignals') === '+') await this.#ask(packets.passSignals);
  }

  /**
   * This server had another client, which is gone: it may have sent interrupts that are pending still. A SIGSTOP that
   * has made the server answer is one, too.
   */
  takeOver(): void {
    this.#control.interrupts.takeOver();
  }

  /** The target runs another program now: the breakpoints of the old one are gone with it. */
  forgetBreakpoints(): void {
    this.#context.inserted.clear();
  }

  /** An object that qXfer reads (`auxv`); undefined where the stub has none of that name. */
  async object(name: string, annex = ''): Promise<Uint8Array | undefined> {
    if (!this.features.transfer.has(name)) return undefined;
    return readObjectBytes(this.#ask, name, annex, this.features.packetSize);
  }

  /** A file on the stub's machine, whole. */
  async remoteFile(path: string, between?: () => Promise<void>): Promise<Uint8Array | undefined> {
    // What the process sees as its file: of a library that is some 30 round trips less.
    const pid = this.processHere;
    const here = pid && (await readHere(path.startsWith('/proc/') ? path : `/proc/${pid}/root${path}`));
    if (here) return here;
    if (!this.features.vPackets) return undefined;
    return readRemoteFile(this.#ask, path, { packetSize: this.features.packetSize, between });
  }

  /** The same, to be read piece by piece. */
  async openRemoteFile(path: string): Promise<RemoteFile | undefined> {
    return this.features.vPackets ? RemoteFile.open(() => this.batch(), path, this.features.packetSize) : undefined;
  }

  /** Runs a command of the stub's own. Returns its output, or undefined if the stub refuses. */
  monitor(command: string): Promise<string | undefined> {
    return this.#one((batch) => batch.monitor(command), ANY_HART);
  }

  insertBreakpoint(breakpoint: Breakpoint): Promise<boolean> {
    return this.#one((batch) => batch.insertBreakpoint(breakpoint));
  }

  removeBreakpoint(breakpoint: Breakpoint): Promise<boolean> {
    return this.#one((batch) => batch.removeBreakpoint(breakpoint));
  }

  /**
   * Leaves the target as it was: stops it if it runs, removes every breakpoint, lets it run on, closes. A second call
   * does no harm, nor does a call after the session has ended.
   */
  detach(): Promise<void> {
    return this.#leaving.detach();
  }

  /** A guest that was never started is left stopped; any other target is left as by {@link detach}. Closes. */
  leaveAsFound(): Promise<void> {
    return this.#leaving.leaveAsFound();
  }

  /** The same. Errors are logged, so that they do not hide the error before. */
  leaveAnyhow(): Promise<void> {
    return this.#leaving.anyhow(() => this.#leaving.leaveAsFound());
  }

  /** Takes every breakpoint out; the target stands as before. */
  clearBreakpoints(): Promise<void> {
    return this.#leaving.clearBreakpoints();
  }

  /** Ends the target: an emulator exits, a process is killed. Harmless when called again. */
  kill(): Promise<void> {
    return this.#leaving.kill();
  }

  /** Closes the connection, whatever the target does: QEMU leaves it stopped, with its breakpoints. */
  close(): void {
    this.#control.link.close();
  }

  /** Detaches. Errors are logged, so that they do not hide the error before. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#leaving.anyhow(() => this.detach());
  }

  /** Sends one request. */
  async #one<T>(add: (batch: Batch) => Reply<T>, hart?: string): Promise<T> {
    const batch = this.batch(hart);
    const reply = add(batch);
    await batch.send();
    return reply.value;
  }
}
