import { Buffer } from 'node:buffer';
import { setTimeout as sleep } from 'node:timers/promises';
import { RsptraceError } from '../../base/errors.js';
import { littleEndian } from '../../base/little-endian.js';
import { type PacketWriter, protocolError } from '../wire/framing.js';
import { decodeHex, hexToBytes } from '../wire/hex.js';
import type { SessionState } from './run-control.js';

/**
 * The answer to a request of a batch, once it has come. A refusal of the target (`E14`, an unknown packet) is a
 * value.
 */
export interface Reply<T> {
  /** Throws `RSP_BAD_STATE` before the answer has come. */
  readonly value: T;
  /** Why the value is undefined or false: the stub's words, or a reason of this client. */
  readonly errorText: string | undefined;
}

/** What a stub that does not know a packet has answered. */
export const NOT_SUPPORTED = 'the stub does not support it';

/** One packet that waits for one answer. The link calls {@link accept} or {@link refuse}, once. */
export abstract class Request<T> implements Reply<T> {
  errorText: string | undefined;
  readonly #packet: string;
  readonly #failed: T;
  #value: T | undefined;
  #answered = false;

  /** `failed`: its value where the target refuses it. */
  constructor(packet: string, failed: T) {
    this.#packet = packet;
    this.#failed = failed;
  }

  get packet(): string {
    return this.#packet;
  }

  /** Frames {@link packet}. */
  write(writer: PacketWriter): void {
    writer.packet(this.packet);
  }

  get value(): T {
    if (!this.#answered) throw notAnswered();
    return this.#value as T;
  }

  /** True when a stop reply may be the answer. */
  get takesStop(): boolean {
    return false;
  }

  /**
   * Takes the answer `bytes[start, end)`, valid during the call. False if the requests behind it in its batch are
   * void.
   */
  accept(bytes: Uint8Array, start: number, end: number): boolean {
    if (end === start) this.errorText = NOT_SUPPORTED;
    // "Enn", or "E.text" where error-message is known.
    else if (bytes[start] === 0x45 && (end - start === 3 || bytes[start + 1] === 0x2e)) {
      this.errorText = ascii(bytes, start, Math.min(end, start + 400));
    }
    this.#value = this.errorText === undefined ? this.decode(bytes, start, end) : this.#failed;
    this.#answered = true;
    return true;
  }

  /** It was sent, but its answer cannot be trusted. */
  lost(): void {}

  /** Answers without asking the stub, or replaces an answer that means nothing. */
  refuse(errorText: string): void {
    this.errorText = errorText;
    this.settle(this.#failed);
  }

  /** Text that the target prints while this request waits; false if the request does not take it. */
  console(_text: Uint8Array): boolean {
    return false;
  }

  protected settle(value: T): void {
    this.#value = value;
    this.#answered = true;
  }

  /** The error for an answer that is none to this packet. */
  protected unexpected(bytes: Uint8Array, start: number, end: number): RsptraceError {
    const answer = ascii(bytes, start, Math.min(end, start + 40));
    return protocolError(`it answers "${answer}" to "${this.packet.slice(0, 40)}"`);
  }

  protected abstract decode(bytes: Uint8Array, start: number, end: number): T;
}

/** A reply that is made of others, once they have come. */
export class Derived<T> implements Reply<T> {
  readonly #parts: readonly Reply<unknown>[];
  readonly #make: () => T;

  constructor(parts: readonly Reply<unknown>[], make: () => T) {
    this.#parts = parts;
    this.#make = make;
  }

  get errorText(): string | undefined {
    return this.#parts.find((part) => part.errorText !== undefined)?.errorText;
  }

  get value(): T {
    return this.#make();
  }
}

/** A reply that is available at once: nothing was asked. */
export function answered<T>(value: T, errorText?: string): Reply<T> {
  return { value, errorText };
}

function notAnswered(): RsptraceError {
  return new RsptraceError('RSP_BAD_STATE', 'The reply was read before the stub had answered');
}

/** The receive buffer of the last call: creating a view costs more than reading through it. */
let received: Buffer<ArrayBufferLike> = Buffer.alloc(0);

/** Bytes as latin-1 text. */
export function ascii(bytes: Uint8Array, start: number, end: number): string {
  if (received.buffer !== bytes.buffer) received = Buffer.from(bytes.buffer);
  return received.toString('latin1', bytes.byteOffset + start, bytes.byteOffset + end);
}

/** Any answer, as text. */
export class TextRequest extends Request<string> {
  constructor(packet: string) {
    super(packet, '');
  }

  override get takesStop(): boolean {
    return this.packet === '?' || this.packet.startsWith('vAttach;');
  }

  override accept(bytes: Uint8Array, start: number, end: number): boolean {
    this.settle(ascii(bytes, start, end));
    return true;
  }

  protected override decode(bytes: Uint8Array, start: number, end: number): string {
    return ascii(bytes, start, end);
  }
}

/** `OK` or an error. */
export class OkRequest extends Request<boolean> {
  constructor(packet: string) {
    super(packet, false);
  }

  protected override decode(bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start === 2 && bytes[start] === 0x4f && bytes[start + 1] === 0x4b) return true;
    throw this.unexpected(bytes, start, end);
  }
}

/** A request whose answer a function decodes; one that is refused has the value `failed`. */
export class PlainRequest<T> extends Request<T> {
  readonly #decode: (text: string) => T;

  constructor(packet: string, failed: T, decode: (text: string) => T) {
    super(packet, failed);
    this.#decode = decode;
  }

  protected override decode(bytes: Uint8Array, start: number, end: number): T {
    return this.#decode(ascii(bytes, start, end));
  }
}

/** Distances of a process's sections from where they were linked. */
export interface SectionOffsets {
  readonly text: bigint;
  readonly data: bigint;
}

/** The answer to qOffsets: `Text=ADDR;Data=ADDR[;Bss=ADDR]`, or `TextSeg=ADDR`, which is no distance. */
export function parseOffsets(said: string): SectionOffsets | undefined {
  const [, text, data] = /^Text=([0-9a-f]{1,16});Data=([0-9a-f]{1,16})/i.exec(said) ?? [];
  return text === undefined ? undefined : { text: BigInt(`0x${text}`), data: BigInt(`0x${data}`) };
}

/** Selects a hart. If that fails, the answers behind it would refer to another hart. */
export class SelectRequest extends OkRequest {
  readonly #answered: (isDone: boolean) => void;

  constructor(packet: string, answered: (isDone: boolean) => void = () => {}) {
    super(packet);
    this.#answered = answered;
  }

  override accept(bytes: Uint8Array, start: number, end: number): boolean {
    super.accept(bytes, start, end);
    this.#answered(this.value);
    return this.value;
  }
}

/** One register by `p`. */
export class RegisterRequest extends Request<bigint | undefined> {
  readonly #size: number;

  constructor(packet: string, size: number) {
    super(packet, undefined);
    this.#size = size;
  }

  protected override decode(bytes: Uint8Array, start: number, end: number): bigint | undefined {
    if (bytes[start] === 0x78) {
      this.errorText = 'the register is not available';
      return undefined;
    }
    const length = (end - start) >> 1;
    const into = new Uint8Array(length);
    if (!decodeHex(bytes, start, end, into, 0)) throw this.unexpected(bytes, start, end);
    // An answer may be shorter than described (lldb-server). A longer one is another register.
    if (length > this.#size) {
      this.errorText = `the stub answers ${length} bytes for a register of ${this.#size}`;
      return undefined;
    }
    return littleEndian(into);
  }
}

/** A piece of memory, decoded into its place in a larger one. Its value is the number of bytes that came. */
export class MemoryRequest extends Request<number> {
  readonly #into: Uint8Array;
  readonly #offset: number;
  readonly #length: number;

  constructor(packet: string, into: Uint8Array, offset: number, length: number) {
    super(packet, 0);
    this.#into = into;
    this.#offset = offset;
    this.#length = length;
  }

  protected override decode(bytes: Uint8Array, start: number, end: number): number {
    const length = (end - start) >> 1;
    if (length > this.#length || !decodeHex(bytes, start, end, this.#into, this.#offset)) {
      throw this.unexpected(bytes, start, end);
    }
    return length;
  }
}

/** The most console output that one monitor command may leave. */
const MOST_OUTPUT = 16 * 1024 * 1024;

/** qRcmd: output comes as O packets, or as the answer. */
export class MonitorRequest extends Request<string | undefined> {
  readonly #output: Uint8Array[] = [];
  #length = 0;

  constructor(packet: string) {
    super(packet, undefined);
  }

  override console(text: Uint8Array): boolean {
    this.#length += text.length;
    if (this.#length > MOST_OUTPUT) throw protocolError('a monitor command prints without end');
    this.#output.push(text);
    return true;
  }

  protected override decode(bytes: Uint8Array, start: number, end: number): string {
    const text = ascii(bytes, start, end);
    if (text !== 'OK') {
      const output = hexToBytes(text);
      if (output === undefined) throw this.unexpected(bytes, start, end);
      this.#output.push(output);
    }
    return Buffer.concat(this.#output).toString('utf8');
  }
}

/** A disturbance of a wire may last for a while: the most retries, with a pause in between that doubles each time. */
const mostTries = 7;
const firstPauseMs = 10;
/** A dropped packet is noticed only by silence, for a whole timeout each time. */
const mostSilences = 2;

/**
 * Retries if answers are lost and the link has found its place in their sequence. Only for requests that may be sent
 * twice.
 * @param ask gets whether all of it or a part may be done already
 */
export async function retry<T>(
  session: { readonly state: SessionState },
  ask: (again: boolean) => Promise<T>,
): Promise<T> {
  let silences = 0;
  for (let tries = 1; ; tries++) {
    try {
      return await ask(tries > 1);
    } catch (error) {
      const code = error instanceof RsptraceError ? error.code : undefined;
      const isLost = code === 'RSP_PROTOCOL' || (code === 'RSP_TIMEOUT' && ++silences < mostSilences);
      if (!isLost || session.state.kind !== 'idle' || tries === mostTries) throw error;
    }
    await sleep(firstPauseMs * 2 ** (tries - 1));
  }
}
