/*
 * What limits a Linux process, read before anything is asked of its kernel (proc(5), cgroups(7)): a limit that is met
 * may send a signal, end the process, or refuse it later what it would have had.
 *
 *   /proc/PID/limits                       RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE: soft limits
 *   /proc/PID/cgroup                       0::/PATH                 version 2 of cgroups
 *   /sys/fs/cgroup/PATH/memory.max         and of each folder around: bytes, or `max`
 *   /sys/fs/cgroup/PATH/memory.current     with the cache of files, which memory.stat has as `file`
 */

/** Reads a file of the process's machine. */
type ReadFile = (path: string) => Promise<Uint8Array | undefined>;

interface ProcessLimits {
  /** Why memory of ours would be seen by the process; undefined if it would not. */
  readonly memory: string | undefined;
  /** The largest file that it may write; undefined if that is not known. */
  readonly fileSize: number | undefined;
}

const MiB = 2 ** 20;
const countedMemory = [
  ['Max address space', 'ulimit -v'],
  ['Max data size', 'ulimit -d'],
] as const;

/** The limits of a process that is to get this many bytes. */
export async function processLimits(read: ReadFile, pid: number, bytes: number): Promise<ProcessLimits> {
  const limits = textOf(await read(`/proc/${pid}/limits`));
  if (limits === undefined) return { memory: 'its limits cannot be read', fileSize: undefined };
  const soft = (name: string): number => {
    const value = new RegExp(`^${name} +(\\d+|unlimited) `, 'm').exec(limits)?.[1] ?? 'unlimited';
    return value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value);
  };
  const limited = countedMemory.find(([name]) => Number.isFinite(soft(name)));
  const memory = limited
    ? `its memory is limited (${limited[1]}), and what is mapped for trampolines would count`
    : await whyNotInGroup(read, pid, bytes);
  return { memory, fileSize: soft('Max file size') };
}

/** A group that has not enough left would end one of its processes. */
async function whyNotInGroup(read: ReadFile, pid: number, bytes: number): Promise<string | undefined> {
  const path = /^0::(\/.*)$/m.exec(textOf(await read(`/proc/${pid}/cgroup`)) ?? '')?.[1];
  for (let group = path ?? ''; group.length > 1; group = group.slice(0, group.lastIndexOf('/'))) {
    const value = async (file: string): Promise<string> =>
      textOf(await read(`/sys/fs/cgroup${group}/${file}`))?.trim() ?? '';
    const most = Number((await value('memory.max')) || 'max');
    if (Number.isNaN(most)) continue;
    const cached = Number(/^file (\d+)$/m.exec(await value('memory.stat'))?.[1] ?? 0);
    const left = most - Number(await value('memory.current')) + cached;
    if (left < bytes) return `its cgroup has ${Math.max(Math.floor(left / MiB), 0)} MiB of memory left`;
  }
  return undefined;
}

function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && new TextDecoder('latin1').decode(bytes);
}
