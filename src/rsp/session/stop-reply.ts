/*
 * GDB manual, "Stop Reply Packets": S, T, W, X, N, w. Keys of T that are hex numbers are expedited registers; keys that
 * are not known are passed over, as the manual asks. Non-stop notifications are not used by this client.
 */

import { type Addr, addr } from '../../base/addr.js';
import { protocolError } from '../wire/framing.js';
import { hexNumber, hexToBytes } from '../wire/hex.js';
import type { SignalNumbers } from './signals.js';

/** Why a hart stopped, if the stub says. `breakpoint`, `trace` and `signal` are lldb-server's words. */
export type StopReason =
  | 'swbreak'
  | 'hwbreak'
  | 'watch'
  | 'rwatch'
  | 'awatch'
  | 'library'
  | 'replaylog'
  | 'fork'
  | 'vfork'
  | 'vforkdone'
  | 'clone'
  | 'exec'
  | 'create'
  | 'syscall_entry'
  | 'syscall_return'
  | 'breakpoint'
  | 'trace'
  | 'signal';

export interface SignalStop {
  readonly kind: 'signal';
  /** The system's number, for a process of a known one: 2 interrupt, 5 trap, 11 bad address. */
  readonly signal: number;
  /** The hart that stopped; undefined if the stub has none. */
  readonly hart: string | undefined;
  readonly reason: StopReason | undefined;
  /** The data address of a watchpoint. */
  readonly address?: Addr;
  /** The thread id that fork, vfork or clone made. */
  readonly child?: string;
  /** The program that exec runs now. */
  readonly path?: string;
  /** Registers sent along, by number, in the target's byte order. */
  readonly registers: ReadonlyMap<number, Uint8Array>;
  readonly core?: number;
}

export type StopReply =
  | SignalStop
  | { readonly kind: 'exited'; readonly status: number; readonly pid?: string }
  /** `name`: of the signal, with SIG, where the system's names are known. */
  | { readonly kind: 'terminated'; readonly signal: number; readonly name?: string; readonly pid?: string }
  /** One thread has ended; the others are as they were. */
  | { readonly kind: 'thread-exited'; readonly status: number; readonly hart: string }
  /** Nothing is left that could run. */
  | { readonly kind: 'no-resumed' }
  /** The connection ended while the target ran. */
  | { readonly kind: 'gone' };

const THREAD_ID = /^(?:p-?[0-9a-fA-F]{1,16}(?:\.-?[0-9a-fA-F]{1,16})?|-?[0-9a-fA-F]{1,16})$/;
const STOP = /^(?:T[0-9a-fA-F]{2}|S[0-9a-fA-F]{2}$|[WX][0-9a-fA-F]{1,8}(?:;|$)|N$|w[0-9a-fA-F]{1,8};)/;
const LONGEST_REGISTER = 1024;
const noRegisters: ReadonlyMap<number, Uint8Array> = new Map();

const REASONS: Readonly<Record<string, StopReason>> = {
  swbreak: 'swbreak',
  hwbreak: 'hwbreak',
  watch: 'watch',
  rwatch: 'rwatch',
  awatch: 'awatch',
  library: 'library',
  replaylog: 'replaylog',
  fork: 'fork',
  vfork: 'vfork',
  vforkdone: 'vforkdone',
  clone: 'clone',
  exec: 'exec',
  create: 'create',
  syscall_entry: 'syscall_entry',
  syscall_return: 'syscall_return',
};
const LLDB_REASONS: Readonly<Record<string, StopReason>> = {
  breakpoint: 'breakpoint',
  trace: 'trace',
  signal: 'signal',
  watchpoint: 'watch',
  exec: 'exec',
  fork: 'fork',
  vfork: 'vfork',
  vforkdone: 'vforkdone',
};

export function isThreadId(text: string): boolean {
  return THREAD_ID.test(text);
}

/**
 * The signal of a stop, if it is the program's own. Traps, interrupts and illegal instructions at breakpoints belong
 * to the debugger.
 */
export function programSignal(stop: StopReply): number | undefined {
  return stop.kind !== 'signal' || [0, 2, 4, 5].includes(stop.signal) ? undefined : stop.signal;
}

/** The process part of a thread id: `01` of `p01.02`. */
export function pidOf(hart: string | undefined): string | undefined {
  return hart?.startsWith('p') ? hart.slice(1).split('.')[0] : undefined;
}

/** True when a packet has the form of a stop reply. */
export function isStopReply(text: string): boolean {
  return STOP.test(text);
}

/** Reads a stop reply; undefined when it is none, or one that contradicts the manual. */
export function parseStopReply(text: string): StopReply | undefined {
  if (!STOP.test(text)) return undefined;
  switch (text[0]) {
    case 'T':
      return parseT(text);
    case 'S':
      return { kind: 'signal', signal: signalOf(text), hart: undefined, reason: undefined, registers: noRegisters };
    case 'W':
    case 'X':
      return parseExit(text);
    case 'w':
      return parseThreadExit(text);
    default:
      return { kind: 'no-resumed' };
  }
}

/** The stop replies of one stub. Most are spelt like the one before, which is not parsed again. */
export class StopReplies {
  /** How the stub's numbers of signals become the system's, once that is known. */
  signals: SignalNumbers | undefined;
  #text = '';
  #stop: StopReply | undefined;

  /** The stop of a packet; undefined if it has another form. Throws `RSP_PROTOCOL` for one that makes no sense. */
  parse(text: string): StopReply | undefined {
    if (this.#stop !== undefined && text === this.#text) return this.#stop;
    if (!isStopReply(text)) return undefined;
    const stop = parseStopReply(text);
    if (stop === undefined) throw protocolError(`it stops with "${text.slice(0, 60)}"`);
    this.#text = text;
    this.#stop = this.signals?.inSystem(stop) ?? stop;
    return this.#stop;
  }
}

function signalOf(text: string): number {
  return Number.parseInt(text.slice(1, 3), 16);
}

/** What the fields of a `T` packet say. */
interface TFields {
  hart?: string;
  reason?: StopReason | undefined;
  address?: Addr | undefined;
  child?: string | undefined;
  path?: string | undefined;
  core?: number | undefined;
  registers?: Map<number, Uint8Array>;
}

function parseT(text: string): SignalStop | undefined {
  const fields: TFields = {};
  for (let at = 3; at < text.length; ) {
    const semicolon = text.indexOf(';', at);
    const end = semicolon < 0 ? text.length : semicolon;
    const colon = text.indexOf(':', at);
    if (colon < 0 || colon > end) return undefined;
    if (!readField(fields, text.slice(at, colon), text.slice(colon + 1, end))) return undefined;
    at = end + 1;
  }
  const { hart, reason, address, child, path, core, registers = noRegisters } = fields;
  const watched = reason?.endsWith('watch') ? address : undefined;
  return { kind: 'signal', signal: signalOf(text), hart, reason, address: watched, child, path, registers, core };
}

/** False for a thread that is none. What is not known is passed over. */
function readField(fields: TFields, key: string, value: string): boolean {
  if (key === 'thread') {
    if (!isThreadId(value)) return false;
    fields.hart = value;
    return true;
  }
  const number = hexNumber(key);
  if (number !== undefined) {
    const bytes = value.length <= 2 * LONGEST_REGISTER ? hexToBytes(value) : undefined;
    if (bytes === undefined) return true;
    fields.registers ??= new Map();
    fields.registers.set(number, bytes);
  } else if (key === 'core') fields.core = hexNumber(value);
  else if (key === 'reason') fields.reason ??= LLDB_REASONS[value];
  else if (key === 'description') fields.address ??= watchedAddress(value);
  else if (Object.hasOwn(REASONS, key)) readReason(fields, key, value);
  return true;
}

function readReason(fields: TFields, key: string, value: string): void {
  const reason = REASONS[key];
  fields.reason = reason;
  if (key.endsWith('watch') && /^[0-9a-fA-F]{1,16}$/.test(value)) fields.address = addr(BigInt(`0x${value}`));
  else if (reason === 'fork' || reason === 'vfork' || reason === 'clone')
    fields.child = isThreadId(value) ? value : undefined;
  else if (reason === 'exec') fields.path = textOf(value);
}

/**
 * lldb-server's description of a watchpoint's stop, in hex: the watched address, the trigger's number and what was
 * accessed there, in decimal.
 */
function watchedAddress(description: string): Addr | undefined {
  const text = textOf(description);
  const [, watched] = /^(\d{1,20}) \d{1,4} \d{1,20}$/.exec(text ?? '') ?? [];
  return watched === undefined ? undefined : addr(BigInt.asUintN(64, BigInt(watched)));
}

function parseExit(text: string): StopReply | undefined {
  const match = /^[WX]([0-9a-fA-F]+)(?:;process:([0-9a-fA-F]{1,16}))?(?:;.*)?$/.exec(text);
  const number = match?.[1] === undefined ? undefined : hexNumber(match[1]);
  if (number === undefined) return undefined;
  const pid = match?.[2] === undefined ? {} : { pid: match[2] };
  return text[0] === 'W' ? { kind: 'exited', status: number, ...pid } : { kind: 'terminated', signal: number, ...pid };
}

function parseThreadExit(text: string): StopReply | undefined {
  const [status = '', hart = ''] = text.slice(1).split(';');
  const number = hexNumber(status);
  if (number === undefined || !isThreadId(hart)) return undefined;
  return { kind: 'thread-exited', status: number, hart };
}

function textOf(hex: string): string | undefined {
  const bytes = hex.length <= 8192 ? hexToBytes(hex) : undefined;
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}
