/*
 * GDB manual, "Stop Reply Packets": S, T, W, X. N and w come only to clients that ask for them. Keys of T that are not
 * known are passed over, as the manual asks, and registers that are sent along.
 */

import { type Addr, addr } from '../../base/addr.js';
import { hexNumber, hexToBytes } from '../wire/hex.js';

/** The keys of T that say why a hart stopped. */
const reasons = [
  ...['swbreak', 'hwbreak', 'watch', 'rwatch', 'awatch', 'library', 'replaylog', 'fork', 'vfork', 'vforkdone'],
  ...['clone', 'exec', 'create', 'syscall_entry', 'syscall_return'],
] as const;
/** What lldb-server has behind the key `reason`, besides `watchpoint`. */
const lldbReasons = ['breakpoint', 'trace', 'signal', 'exec', 'fork', 'vfork', 'vforkdone'] as const;

/** Why a hart stopped, if the stub says. */
export type StopReason = (typeof reasons)[number] | (typeof lldbReasons)[number];

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
}

export type StopReply =
  | SignalStop
  | { readonly kind: 'exited'; readonly status: number }
  /** `name`: of the signal, with SIG, where the system's names are known. */
  | { readonly kind: 'terminated'; readonly signal: number; readonly name?: string }
  /** The connection ended while the target ran. */
  | { readonly kind: 'gone' };

const THREAD_ID = /^(?:p-?[0-9a-fA-F]{1,16}(?:\.-?[0-9a-fA-F]{1,16})?|-?[0-9a-fA-F]{1,16})$/;
const STOP = /^(?:T[0-9a-fA-F]{2}|S[0-9a-fA-F]{2}$|[WX][0-9a-fA-F]{1,8}(?:;|$))/;

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
  if (text[0] === 'T') return parseT(text);
  return text[0] === 'S'
    ? { kind: 'signal', signal: signalOf(text), hart: undefined, reason: undefined }
    : parseExit(text);
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
  const { hart, reason, address, child, path } = fields;
  const watched = reason?.endsWith('watch') ? address : undefined;
  return { kind: 'signal', signal: signalOf(text), hart, reason, address: watched, child, path };
}

/** False for a thread that is none. What is not known is passed over. */
function readField(fields: TFields, key: string, value: string): boolean {
  if (key === 'thread') {
    if (!isThreadId(value)) return false;
    fields.hart = value;
    return true;
  }
  const reason = reasons.find((each) => each === key);
  if (key === 'reason') fields.reason ??= value === 'watchpoint' ? 'watch' : lldbReasons.find((each) => each === value);
  else if (key === 'description') fields.address ??= watchedAddress(value);
  else if (reason !== undefined) readReason(fields, reason, value);
  return true;
}

function readReason(fields: TFields, reason: StopReason, value: string): void {
  fields.reason = reason;
  if (reason.endsWith('watch') && /^[0-9a-fA-F]{1,16}$/.test(value)) fields.address = addr(BigInt(`0x${value}`));
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
  const number = hexNumber(/^[WX]([0-9a-fA-F]+)(?:;.*)?$/.exec(text)?.[1] ?? '');
  if (number === undefined) return undefined;
  return text[0] === 'W' ? { kind: 'exited', status: number } : { kind: 'terminated', signal: number };
}

function textOf(hex: string): string | undefined {
  const bytes = hex.length <= 8192 ? hexToBytes(hex) : undefined;
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}
