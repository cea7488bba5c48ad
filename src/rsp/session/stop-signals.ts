import { readFileSync } from 'node:fs';

/*
 * Servers of Linux processes stop threads by signals. A thread may stop for another reason in the same moment; then the
 * signal is still pending. It would hit a program that is left now: a SIGINT of gdbserver ends it, a SIGSTOP of
 * lldb-server stops it (state T).
 *
 *   /proc/PID/status            ShdPnd: sent to the process         gdbserver, after its interrupt
 *   /proc/PID/task/TID/status   SigPnd: sent to the thread          lldb-server, at every stop of several threads
 */

const SIGINT = 2;
const SIGSTOP = 19;

/** Reads from the stub's machine: the text of a file of proc(5). */
export type ReadProc = (path: string) => Promise<Uint8Array | undefined>;

/**
 * How a process under gdbserver is stopped while it runs. gdbserver sends a SIGINT to the process group of that id
 * (`kill(-pid)`). That group exists only if the process leads one. A shell's child does, but no child of `cargo run`
 * or of a script.
 *
 *   stub    by the packet, as everywhere
 *   signal  by a SIGINT of ours: the process runs on this machine
 *   never   only a hit stops it
 */
export type InterruptWay = 'stub' | 'signal' | 'never';

/** Finds out how; `stub` if the stub reads no files of proc(5). */
export async function interruptWay(read: ReadProc, pid: number): Promise<InterruptWay> {
  const there = await statOf(read, pid);
  if (there === undefined || there.group === pid) return 'stub';
  const bootId = '/proc/sys/kernel/random/boot_id';
  const here: ReadProc = async (path) => {
    try {
      return readFileSync(path);
    } catch {
      return undefined;
    }
  };
  const ours = await statOf(here, pid);
  const [theirBoot, ourBoot] = await Promise.all([read(bootId), here(bootId)]);
  const isSameBoot = theirBoot !== undefined && ourBoot !== undefined && Buffer.compare(theirBoot, ourBoot) === 0;
  return isSameBoot && ours?.group === there.group && ours.started === there.started ? 'signal' : 'never';
}

/** proc(5), /proc/PID/stat: `pid (comm) state ppid pgrp ... starttime`; comm may contain anything. */
async function statOf(read: ReadProc, pid: number): Promise<{ group: number; started: string } | undefined> {
  const text = new TextDecoder('latin1').decode(await read(`/proc/${pid}/stat`));
  const fields = /.*\) (.*)/s.exec(text)?.[1]?.split(' ') ?? [];
  const [group, started] = [fields[2], fields[19]];
  return group === undefined || started === undefined ? undefined : { group: Number(group), started };
}

/** True if a SIGINT is pending for a process and not blocked; a blocked one would not come. */
export async function interruptIsPending(read: ReadProc, pid: number): Promise<boolean> {
  const mask = await maskReader(read, `/proc/${pid}/status`);
  return ((mask('ShdPnd') | mask('SigPnd')) & ~mask('SigBlk') & bit(SIGINT)) !== 0n;
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
  const bytes = await read(path);
  const text = bytes ? new TextDecoder('latin1').decode(bytes) : '';
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
