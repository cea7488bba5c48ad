import { type Addr, addOffset, pointsTo } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import { hexToBytes } from '../wire/hex.js';
import { type Breakpoint, BreakpointRequest, WriteBlockRequest } from './batch-requests.js';
import type { StubFeatures } from './features.js';
import type { Resume } from './hart-requests.js';
import { packets } from './packets.js';
import { assembledBlock, BlockRequest, type RegisterBlock } from './registers.js';
import {
  answered,
  Derived,
  MemoryRequest,
  MonitorRequest,
  NOT_SUPPORTED,
  OkRequest,
  PlainRequest,
  parseOffsets,
  RegisterRequest,
  type Reply,
  type Request,
  type SectionOffsets,
  TextRequest,
} from './request.js';
import type { RunControl } from './run-control.js';
import { pidOf, type StopReply } from './stop-reply.js';
import type { RegisterDescription, TargetDescription } from './target-description.js';

/** What a batch needs of its session. */
export interface BatchContext {
  readonly control: RunControl;
  readonly features: StubFeatures;
  readonly target: TargetDescription;
  /** By process, where there are several. */
  readonly clusters: ReadonlyMap<string, TargetDescription>;
  readonly inserted: Map<string, Breakpoint>;
}

/** The name of {@link Batch}'s member for packets as text, which this folder's index does not export. */
export const raw = Symbol('raw');

/** The most one batch reads or writes in one request. */
const LARGEST_TRANSFER = 16 * 1024 * 1024;

/** The most bytes that one `m` may ask for: the answer is two digits a byte, and QEMU keeps four for the frame. */
export function readLimit(packetSize: number): number {
  return (packetSize - 4) >> 1;
}

/** The most bytes that one `M` may carry, beside the longest address and length. */
export function writeLimit(packetSize: number): number {
  return (packetSize - 40) >> 1;
}

/**
 * Requests of one hart that go out in one write, perhaps with the resume as the last packet. Each method returns a
 * reply that is available once {@link send} or {@link resume} has resolved. A refusal of the target is a value
 * (undefined, false), with {@link Reply.errorText}. A batch is sent once.
 */
export class Batch {
  readonly #context: BatchContext;
  readonly #hart: string | undefined;
  readonly #requests: Request<unknown>[] = [];
  #sent = false;
  #finished = false;
  #failure: RsptraceError | undefined;
  #waiters: { resolve: () => void; reject: (error: RsptraceError) => void }[] | undefined;
  /** Register changes for one G, if P is not known: the last request of the batch. */
  #changes: { readonly request: WriteBlockRequest; readonly values: Map<RegisterDescription, bigint> } | undefined;

  constructor(context: BatchContext, hart: string | undefined) {
    this.#context = context;
    this.#hart = hart;
  }

  /**
   * All registers in `g`, and those of `names` that are not in it, one by one; without `g` the named ones only (or
   * all). Names that the target does not have are left out.
   */
  readRegisters(names?: readonly string[]): Reply<RegisterBlock> {
    const { features, control } = this.#context;
    const target = this.#target;
    const hart = this.#hart ?? control.stoppedHart;
    const block = features.registerBlock
      ? this.#add(
          new BlockRequest(packets.readRegisters, target, (read) => {
            control.requests.lastBlock = { hart, block: read };
          }),
        )
      : undefined;
    const wanted = names ?? (block === undefined ? [...target.registers.keys()] : []);
    const singles = new Map<string, RegisterRequest>();
    for (const name of wanted) {
      const register = target.register(name);
      if (register === undefined || (block !== undefined && register.offsetInG !== undefined)) continue;
      singles.set(
        register.name,
        this.#add(new RegisterRequest(packets.readRegister(register.number), register.bits >> 3)),
      );
    }
    if (block !== undefined && singles.size === 0) return block;
    return assembledBlock(target, block, singles);
  }

  /** What the stub calls a hart or thread, and says of it: QEMU whether it is halted. Undefined if it says nothing. */
  readHartName(id: string): Reply<string | undefined> {
    const answer = this.#add(new TextRequest(packets.threadExtraInfo(id)));
    return new Derived([answer], () => {
      const bytes = hexToBytes(answer.value);
      return bytes && bytes.length > 0 ? new TextDecoder().decode(bytes) : undefined;
    });
  }

  /** One register; undefined when the target does not know or give it. Throws `RSP_NO_TARGET_DESCRIPTION`. */
  readRegister(name: string): Reply<bigint | undefined> {
    const register = this.#register(name);
    if (register === undefined) return answered(undefined, `the target has no register ${name}`);
    if (this.#context.features.singleRegister) {
      return this.#add(new RegisterRequest(packets.readRegister(register.number), register.bits >> 3));
    }
    if (register.offsetInG === undefined) return answered(undefined, NOT_SUPPORTED);
    const block = this.readRegisters();
    return new Derived([block], () => block.value.value(register));
  }

  /** Memory as the hart sees it; undefined when any of the bytes cannot be read. */
  readMemory(address: Addr, length: number): Reply<Uint8Array | undefined> {
    checkTransfer(length);
    const bytes = new Uint8Array(length);
    const { packetSize, pointerBits } = this.#context.features;
    const limit = readLimit(packetSize);
    const from = pointsTo(address, pointerBits);
    const parts: MemoryRequest[] = [];
    for (let offset = 0; offset < length; offset += limit) {
      const size = Math.min(limit, length - offset);
      const packet = packets.readMemory(addOffset(from, offset), size);
      parts.push(this.#add(new MemoryRequest(packet, bytes, offset, size)));
    }
    return new Derived(parts, () => (parts.reduce((sum, { value }) => sum + value, 0) === length ? bytes : undefined));
  }

  /** False when the target refuses. Throws `RSP_NO_TARGET_DESCRIPTION`. */
  writeRegister(name: string, value: bigint): Reply<boolean> {
    const register = this.#register(name);
    if (register === undefined) return answered(false, `the target has no register ${name}`);
    if (this.#context.features.singleRegister) {
      return this.#add(new OkRequest(packets.writeRegister(register.number, value, register.bits >> 3)));
    }
    return this.#writeInBlock(register, value);
  }

  #writeInBlock(register: RegisterDescription, value: bigint): Reply<boolean> {
    const { control } = this.#context;
    const last = control.requests.lastBlock;
    if (register.offsetInG === undefined) return answered(false, NOT_SUPPORTED);
    if (last === undefined || last.hart !== (this.#hart ?? control.stoppedHart)) {
      return answered(false, 'this stub writes all registers at once: read them first, at the same stop');
    }
    let changes = this.#changes;
    if (changes === undefined || this.#requests.at(-1) !== changes.request) {
      const values = new Map<RegisterDescription, bigint>();
      changes = { request: this.#add(new WriteBlockRequest(control, last, values)), values };
      this.#changes = changes;
    }
    changes.values.set(register, value);
    return changes.request;
  }

  /** False when any of the bytes could not be written; those before it may be. */
  writeMemory(address: Addr, bytes: Uint8Array): Reply<boolean> {
    checkTransfer(bytes.length);
    const limit = writeLimit(this.#context.features.packetSize);
    const parts: OkRequest[] = [];
    for (let offset = 0; offset < bytes.length; offset += limit) {
      const part = bytes.subarray(offset, offset + limit);
      parts.push(this.#add(new OkRequest(packets.writeMemory(addOffset(address, offset), part))));
    }
    return new Derived(parts, () => parts.reduce((all, { value }) => value && all, true));
  }

  /** False when the target refuses, or has no such breakpoints. */
  insertBreakpoint(breakpoint: Breakpoint): Reply<boolean> {
    return this.#add(new BreakpointRequest(breakpoint, this.#context.inserted, 'insert'));
  }

  /** False when the target refuses: the breakpoint may still be there. */
  removeBreakpoint(breakpoint: Breakpoint): Reply<boolean> {
    return this.#add(new BreakpointRequest(breakpoint, this.#context.inserted, 'remove'));
  }

  /** A command of the stub's own (`info registers`): what it prints. */
  monitor(command: string): Reply<string | undefined> {
    return this.#add(new MonitorRequest(packets.monitor(command)));
  }

  /**
   * One register by its number, for one that the target description leaves out; undefined if the stub does not give
   * it.
   */
  readNumberedRegister(number: number): Reply<bigint | undefined> {
    return this.#add(new RegisterRequest(packets.readRegister(number), 8));
  }

  /**
   * Writes all registers in one packet: the text that {@link RegisterBlock.hex} gave. Read the registers anew after it.
   */
  writeRegisters(hex: string): Reply<boolean> {
    return this.#add(new OkRequest(packets.writeRegisters(hex)));
  }

  /**
   * At most a packet of memory by physical address; undefined where the stub has no such mode (QEMU's machines have).
   */
  readPhysicalMemory(address: Addr, length: number): Reply<Uint8Array | undefined> {
    const on = this.#add(new OkRequest(packets.qemuPhysicalMemory(true)));
    const memory = this.readMemory(address, length);
    const off = this.#add(new OkRequest(packets.qemuPhysicalMemory(false)));
    return new Derived([on, memory], () => (on.value && off.value ? memory.value : undefined));
  }

  /** How far a process's sections are from their link addresses; undefined if the stub does not say. */
  sectionOffsets(): Reply<SectionOffsets | undefined> {
    return this.#add(new PlainRequest(packets.sectionOffsets, undefined, parseOffsets));
  }

  /** The shortest question there is; every stub answers it, with nothing. */
  ping(): void {
    this[raw](packets.mustReplyEmpty);
  }

  /** Whether the stub lists its threads in the old way, by `qfThreadInfo`. */
  listsThreads(): Reply<boolean> {
    return this.#add(new PlainRequest(packets.firstThreads, false, (text) => text.startsWith('m')));
  }

  /** Whether the stub gives files of its machine. */
  servesFiles(): Reply<boolean> {
    return this.#add(new PlainRequest(packets.chooseFiles, false, (text) => text.startsWith('F')));
  }

  /**
   * Any packet that does not resume the target: its answer as latin-1 text, `''` if the packet is not known. This
   * member's name stays inside this folder: from outside, the members above are the possible requests.
   */
  [raw](packet: string): Reply<string> {
    return this.#add(new TextRequest(packet));
  }

  /**
   * Sends everything. Rejects with `RSP_BAD_STATE` while the target runs, `RSP_TIMEOUT`, `RSP_CLOSED`, `RSP_PROTOCOL`.
   */
  send(): Promise<void> {
    const refusal = this.#begin();
    if (refusal !== undefined) return Promise.reject(refusal);
    if (this.#requests.length === 0) {
      this.#done(undefined);
      return Promise.resolve();
    }
    const answered = this.answered;
    this.#context.control.send(this.#hart, this.#requests, (error) => this.#done(error));
    return answered;
  }

  /**
   * Sends everything and resumes the target, in one write, whatever the answers will be. Resolves with the stop that
   * ends the run, or `gone` if the connection ends first. The replies are available as soon as {@link answered} has
   * resolved.
   */
  resume(how: Resume = { kind: 'continue' }): Promise<StopReply> {
    const refusal = this.#begin();
    if (refusal !== undefined) return Promise.reject(refusal);
    return this.#context.control.send(
      this.#hart,
      this.#requests,
      (error) => this.#done(error),
      how,
    ) as Promise<StopReply>;
  }

  /** Resolves when all requests are answered, while the target may already run on. */
  get answered(): Promise<void> {
    if (this.#finished) return this.#failure === undefined ? Promise.resolve() : Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#waiters ??= [];
      this.#waiters.push({ resolve, reject });
    });
  }

  #begin(): RsptraceError | undefined {
    if (this.#sent) return new RsptraceError('RSP_BAD_STATE', 'A batch is sent once');
    const refusal = this.#context.control.refusal();
    if (refusal === undefined) this.#sent = true;
    return refusal;
  }

  #done(error: RsptraceError | undefined): void {
    this.#finished = true;
    this.#failure = error;
    if (error !== undefined) for (const request of this.#requests) request.lost();
    for (const waiter of this.#waiters ?? []) {
      if (error === undefined) waiter.resolve();
      else waiter.reject(error);
    }
  }

  #add<R extends Request<unknown>>(request: R): R {
    if (this.#sent) throw new RsptraceError('RSP_BAD_STATE', 'A batch that was sent takes no more requests');
    this.#requests.push(request);
    return request;
  }

  /** Of the hart. */
  get #target(): TargetDescription {
    const { control, target, clusters } = this.#context;
    return (clusters.size > 0 && clusters.get(pidOf(this.#hart ?? control.stoppedHart) ?? '')) || target;
  }

  #register(name: string): RegisterDescription | undefined {
    const target = this.#target;
    const register = target.register(name);
    if (register === undefined && target.source !== 'target.xml') {
      throw new RsptraceError(
        'RSP_NO_TARGET_DESCRIPTION',
        `The stub does not describe its registers, and "${name}" is not among those that every such target has`,
      );
    }
    return register;
  }
}

function checkTransfer(length: number): void {
  if (Number.isSafeInteger(length) && length >= 0 && length <= LARGEST_TRANSFER) return;
  throw new RsptraceError('RSP_BAD_REQUEST', `A batch cannot transfer ${length} bytes at once`, {
    hint: 'Use the memory of the session, which goes piece by piece',
  });
}
