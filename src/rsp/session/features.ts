import { hexNumber } from '../wire/hex.js';
import type { SignalNumbers } from './signals.js';

/** What a stub can do, as its answers to the handshake say. */
export interface StubFeatures {
  /** The qSupported answer: names with `+`, `-`, `?` or the value after `=`. */
  readonly supported: ReadonlyMap<string, string>;
  /** The longest packet the stub takes, in bytes, within [256, 1 MiB]. */
  readonly packetSize: number;
  readonly noAck: boolean;
  readonly multiprocess: boolean;
  /** Actions of vCont (`c`, `C`, `s`, `S`, `t`, `r`); empty if vCont is not known. */
  readonly vCont: ReadonlySet<string>;
  /** Stop replies say that a software breakpoint was hit. */
  readonly swbreak: boolean;
  /** Objects that qXfer reads: `features`, `threads`, `memory-map`, ... */
  readonly transfer: ReadonlySet<string>;
  /** False for a stub that answers unknown v packets with something: its other v packets cannot be trusted either. */
  readonly vPackets: boolean;
  /** `g` works; else registers are read one by one. */
  readonly registerBlock: boolean;
  /** `p` works; else registers come out of `g`. */
  readonly singleRegister: boolean;
  /** False if each packet must wait for the answer to the one before it. */
  readonly batches: boolean;
  /** QEMU's single-step flags (`ENABLE=1,NOIRQ=2,NOTIMER=4`); undefined on any other stub. */
  readonly qemuStepBits: string | undefined;
  /** Bits of an address that the stub is asked for: it may not know that the target ignores those above. */
  readonly pointerBits?: number | undefined;
  /** How the stub's numbers of signals become the system's. */
  readonly signals: SignalNumbers;
  /** The harts of one machine are several processes: QEMU has one for each cluster of processors. */
  readonly isClustered: boolean;
}

/** The smallest and the largest PacketSize taken seriously. */
const SMALLEST_PACKET = 256;
const LARGEST_PACKET = 1024 * 1024;
/** gdb's own guess for a stub that does not say. */
const DEFAULT_PACKET = 400;

/** Reads a qSupported answer: `name=value;name+;name-;name?`. */
export function parseSupported(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const item of text.split(';')) {
    const equals = item.indexOf('=');
    if (equals > 0) found.set(item.slice(0, equals), item.slice(equals + 1));
    else if (/[+?-]$/.test(item)) found.set(item.slice(0, -1), item.slice(-1));
  }
  return found;
}

/** The stub's PacketSize in bytes, clamped. lldb-server and Renode write it in decimal. */
export function packetSizeOf(supported: ReadonlyMap<string, string>): number {
  const text = supported.get('PacketSize');
  if (text === undefined) return DEFAULT_PACKET;
  const decimal = supported.has('qEcho') || supported.has('native-signals') || supported.has('t32extensions');
  const size = decimal && /^\d{1,9}$/.test(text) ? Number(text) : hexNumber(text);
  return Math.min(Math.max(size ?? DEFAULT_PACKET, SMALLEST_PACKET), LARGEST_PACKET);
}

/** The objects that `qXfer:NAME:read` serves. */
export function transferObjects(supported: ReadonlyMap<string, string>): ReadonlySet<string> {
  const objects = new Set<string>();
  for (const [name, value] of supported) {
    const match = /^qXfer:([\w-]+):read$/.exec(name);
    if (match?.[1] !== undefined && value === '+') objects.add(match[1]);
  }
  return objects;
}

/** The actions in a `vCont?` answer: `vCont;c;C;s;S`. */
export function parseActions(text: string): ReadonlySet<string> {
  if (!text.startsWith('vCont;')) return new Set();
  return new Set(text.slice(6).split(';'));
}

/** True for a stub that debugs a Linux process, not a machine. */
export function isProcess(features: StubFeatures): boolean {
  return features.transfer.has('auxv');
}
