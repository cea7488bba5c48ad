import { readFileSync } from 'node:fs';
import { tracerIn } from '../../base/proc.js';

/*
 * Servers of Linux processes stop threads by signals. A thread may stop for another reason in the same moment; then the
 * signal is still pending. It would hit a program that is left now. A SIGINT of gdbserver ends it. A SIGSTOP of
 * lldb-server stops it (state T), as does one of ours.
 *
 *   /proc/PID/status            ShdPnd: sent to the process         gdbserver's interrupt, or ours
 *   /proc/PID/task/TID/status   SigPnd: sent to the thread          lldb-server, at every stop of several threads
 */

const SIGINT = 2;
const SIGSTOP = 19;

/** Reads from the stub's machine: the text of a file of proc(5). */
type ReadProc = (path: string) => Promise<Uint8Array | undefined>;

/** The same of this machine. */
export const readHere: ReadProc = async (path) => {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
};

/** True if a gdbserver of this machine traces this process. */
export async function isTracedHere(pid: number): Promise<boolean> {
  const status = textOf(await readHere(`/proc/${pid}/status`));
  return textOf(await readHere(`/proc/${tracerIn(status)}/comm`)).trim() === 'gdbserver';
}

/**
 * Whether gdbserver can interrupt a process: it sends a SIGINT to the process group of that id (`kill(-pid)`). That
 * group exists only if the process leads one. A shell's child does, but no child of `cargo run` or of a script.
 */
export async function leadsGroup(read: ReadProc, pid: number): Promise<boolean> {
  // proc(5), /proc/PID/stat: `pid (comm) state ppid pgrp ...`; comm may contain anything.
  const group = /.*\) (.*)/s.exec(textOf(await read(`/proc/${pid}/stat`)))?.[1]?.split(' ')[2];
  return group === undefined || Number(group) === pid;
}

function textOf(bytes: Uint8Array | undefined): string {
  return bytes ? new TextDecoder('latin1').decode(bytes) : '';
}

/** True if a signal that interrupts is pending for a process and not blocked; a blocked one would not come. */
export async function interruptIsPending(read: ReadProc, pid: number): Promise<boolean> {
  const mask = await maskReader(read, `/proc/${pid}/status`);
  return ((mask('ShdPnd') | mask('SigPnd')) & ~mask('SigBlk') & (bit(SIGINT) | bit(SIGSTOP))) !== 0n;
}

/** True if a thread blocks SIGINT, as those do that wait for it by sigwait or a signalfd. */
export async function blocksInterrupt(read: ReadProc, pid: number, thread: number): Promise<boolean> {
  const mask = await maskReader(read, `/proc/${pid}/task/${thread}/status`);
  return (mask('SigBlk') & bit(SIGINT)) !== 0n;
}

/** True if a SIGSTOP is pending for one of these threads. */
export async function stopIsPending(read: ReadProc, pid: number, threads: readonly number[]): Promise<boolean> {
  for (const thread of threads) {
    const mask = await maskReader(read, `/proc/${pid}/task/${thread}/status`);
    if ((mask('SigPnd') & bit(SIGSTOP)) !== 0n) return true;
  }
  return false;
}

async function maskReader(read: ReadProc, path: string): Promise<(name: string) => bigint> {
  const text = textOf(await read(path));
  return (name) => BigInt(`0x${new RegExp(`^${name}:\\s*([0-9a-f]{1,16})$`, 'm').exec(text)?.[1] ?? 0}`);
}

/** As the masks of proc(5) have it. */
function bit(signal: number): bigint {
  return 1n << BigInt(signal - 1);
}

/** The process that lldb-server debugs, by its answer to qProcessInfo; undefined for other stubs. */
export function processOf(info: string): number | undefined {
  const pid = /^pid:([0-9a-f]{1,8});/.exec(info)?.[1];
  return pid === undefined ? undefined : Number.parseInt(pid, 16);
}
