import { Buffer } from 'node:buffer';
import type { Addr } from '../../base/addr.js';
import { bytesToHex, littleEndianHex } from '../wire/hex.js';

/** System calls of a Linux process, by their numbers. */
export type SystemCalls = readonly number[] | 'all';

/**
 * Signals that a Linux process gets without a stop, as the protocol numbers them. All but INT and TRAP, which debuggers
 * need, and those that stop jobs (STOP, TSTP, TTIN, TTOU).
 */
const passedSignals = Array.from({ length: 78 }, (_, index) => index + 1).filter(
  (n) => ![2, 5, 17, 18, 21, 22].includes(n),
);

/** Signals that reach a program when it is left: all but SIGTRAP and SIGSTOP, by which servers stop it, as by SIGINT. */
const programSignals = Array.from({ length: 78 }, (_, index) => index + 1).filter((n) => ![5, 17].includes(n));

/**
 * Every packet that this client sends, by capability (GDB manual, "Remote Protocol"; QEMU's own: docs/system/gdb.rst).
 * Numbers are hex; a hart is a thread id as the stub spells it (`p01.02`, `1`, `-1` all, `0` any).
 */
export const packets = {
  // Handshake, in this order. xmlRegisters=i386: without it gdbserver's x86 description names no register.
  supported:
    'qSupported:multiprocess+;swbreak+;hwbreak+;fork-events+;vfork-events+;exec-events+;vContSupported+;error-message+;binary-upload+;xmlRegisters=i386',
  startNoAckMode: 'QStartNoAckMode',
  mustReplyEmpty: 'vMustReplyEmpty',
  whyStopped: '?',
  actions: 'vCont?',
  attached: (pid: string | undefined) => (pid === undefined ? 'qAttached' : `qAttached:${pid}`),
  qemuStepBits: 'qqemu.sstepbits',
  // QEMU: the next cluster of the machine, which is a process of the stub
  attachProcess: (pid: number) => `vAttach;${pid.toString(16)}`,

  // Objects read in pieces: features (target.xml and what it includes), threads, memory-map, auxv.
  transfer: (object: string, annex: string, offset: number, length: number) =>
    `qXfer:${object}:read:${annex}:${offset.toString(16)},${length.toString(16)}`,

  // Harts
  firstThreads: 'qfThreadInfo',
  moreThreads: 'qsThreadInfo',
  threadExtraInfo: (hart: string) => `qThreadExtraInfo,${hart}`,
  selectHart: (hart: string) => `Hg${hart}`,
  selectHartToRun: (hart: string) => `Hc${hart}`,

  // Registers, in the target's byte order
  readRegisters: 'g',
  writeRegisters: (hexBytes: string) => `G${hexBytes}`,
  readRegister: (number: number) => `p${number.toString(16)}`,
  writeRegister: (number: number, value: bigint, size: number) =>
    `P${number.toString(16)}=${littleEndianHex(value, size)}`,

  // Memory
  readMemory: (address: Addr, length: number) => `m${address.toString(16)},${length.toString(16)}`,
  writeMemory: (address: Addr, bytes: Uint8Array) =>
    `M${address.toString(16)},${bytes.length.toString(16)}:${bytesToHex(bytes)}`,

  // QEMU: m and M take physical addresses until it is turned off again
  qemuPhysicalMemory: (on: boolean) => `Qqemu.PhyMemMode:${on ? 1 : 0}`,

  // Breakpoints: type 0 software, 1 hardware; kind is the length of the trap instruction. Watchpoints: 2 write, 3 read,
  // 4 both; kind is their length
  insertBreakpoint: (type: number, address: Addr, kind: number) =>
    `Z${type},${address.toString(16)},${kind.toString(16)}`,
  removeBreakpoint: (type: number, address: Addr, kind: number) =>
    `z${type},${address.toString(16)},${kind.toString(16)}`,

  // Running; answered by a stop reply. Plain c, C, s, S where vCont is not known
  run: (actions: readonly string[]) => `vCont;${actions.join(';')}`,
  runPlain: (action: string) => action,
  interrupt: 0x03,

  // File-I/O: the answer to the target's own F request
  fileIo: (result: number, errno?: number, interrupted = false) =>
    errno === undefined
      ? `F${result.toString(16)}`
      : `F${result < 0 ? '-' : ''}${Math.abs(result).toString(16)},${errno.toString(16)}${interrupted ? ',C' : ''}`,

  // Processes of Linux
  catchSystemCalls: (numbers: SystemCalls) =>
    numbers === 'all'
      ? 'QCatchSyscalls:1'
      : numbers.length === 0
        ? 'QCatchSyscalls:0'
        : `QCatchSyscalls:1;${numbers.map((number) => number.toString(16)).join(';')}`,
  processInfo: 'qProcessInfo',
  /** `own`: a SIGINT was none of the server's. */
  programSignals: (own: boolean) =>
    `QProgramSignals:${programSignals.flatMap((signal) => (own || signal !== 2 ? signal.toString(16) : [])).join(';')}`,
  passSignals: `QPassSignals:${passedSignals.map((signal) => signal.toString(16)).join(';')}`,

  sectionOffsets: 'qOffsets',

  // Files of the stub's machine, as the process that it debugs sees them (0: as the stub does)
  chooseFiles: 'vFile:setfs:0',
  openFile: (path: string) => `vFile:open:${Buffer.from(path, 'utf8').toString('hex')},0,0`,
  readFile: (file: number, count: number, offset: number) =>
    `vFile:pread:${file.toString(16)},${count.toString(16)},${offset.toString(16)}`,
  closeFile: (file: number) => `vFile:close:${file.toString(16)}`,

  // Leaving
  monitor: (command: string) => `qRcmd,${Buffer.from(command, 'utf8').toString('hex')}`,
  detach: (pid: string | undefined) => (pid === undefined ? 'D' : `D;${pid}`),
  kill: (pid: string | undefined) => (pid === undefined ? 'k' : `vKill;${pid}`),
} as const;
