/*
 * What limits a Linux process (proc(5), cgroups(7)), read before anything is asked of its kernel. A limit that is met
 * may send a signal, end the process, or refuse it later what it would have had.
 *
 *   /proc/PID/limits                       RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE: soft limits
 *   /proc/PID/cgroup                       0::/PATH                 version 2 of cgroups
 *   /sys/fs/cgroup/PATH/memory.max         and of each folder around: bytes, or `max`
 *   /sys/fs/cgroup/PATH/memory.current     with the cache of files, which memory.stat has as `file`
 */

/** Reads a file of the process's machine. */
type ReadFile = (path: string) => Promise<Uint8Array | undefined>;

const MiB = 2 ** 20;
const countedMemory = [
  ['Max address space', 'ulimit -v'],
  ['Max data size', 'ulimit -d'],
] as const;

/**
 * Why a process would see that it gets this many bytes, so many of them as a file; undefined if it would not. A file
 * past its limit brings a SIGXFSZ.
 */
export async function limitsOf(
  read: ReadFile,
  pid: number,
  { bytes, file }: { readonly bytes: number; readonly file: number },
): Promise<string | undefined> {
  const limits = textOf(await read(`/proc/${pid}/limits`));
  if (limits === undefined) return 'its limits cannot be read';
  const soft = (name: string): number => {
    const value = new RegExp(`^${name} +(\\d+|unlimited) `, 'm').exec(limits)?.[1] ?? 'unlimited';
    return value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value);
  };
  const limited = countedMemory.find(([name]) => Number.isFinite(soft(name)));
  if (limited) return `its memory is limited (${limited[1]}), and what is mapped for trampolines would count`;
  if (soft('Max file size') < file) return 'its files are limited (ulimit -f), and records lie in one';
  return whyNotInGroup(read, pid, bytes);
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
