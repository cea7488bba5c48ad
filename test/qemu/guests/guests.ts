// The guest kernels and their ground truth, for tests and benchmarks: where the ELFs and their sources are, how QEMU
// boots them, and what the guest itself printed about its calls and polls. See README.md.
import { join } from 'node:path';
import { DIR, findGuest, type Guest, readManifest, unpack } from './store.mjs';

export type { Guest };

export interface Count {
  /** Times the future was created and polled once at least, or the function was called. */
  readonly calls: number;
  /** Times it was polled. */
  readonly polls: number;
}

export interface LabTask {
  readonly id: number;
  readonly name: string;
  readonly polls: number;
}

/** What a guest printed. Parts that it did not get to print are undefined. */
export interface Lab {
  readonly boot: { readonly arch: string; readonly mode: string } | undefined;
  readonly cfg: { readonly iters: number; readonly tasks: number; readonly sleeps: number } | undefined;
  readonly stats: ReadonlyMap<string, Count>;
  readonly tasks: readonly LabTask[];
  readonly exec: LabExec | undefined;
  readonly heap: { readonly allocs: number; readonly frees: number } | undefined;
  /** As printed, in hex: '0x899e'. */
  readonly checksum: string | undefined;
  readonly done: boolean;
  /** Place and message, if the guest panicked. */
  readonly panic?: string;
}

export interface LabExec {
  readonly spawned: number;
  readonly polls: number;
  readonly wakes: number;
  readonly irqWakes: number;
  readonly ticks: number;
}

/** Stats and tasks whose numbers depend on when the timer interrupt comes; all others are the same in every run. */
export const TIMING_DEPENDENT: ReadonlySet<string> = new Set(['pollfn', 'irq_wait', 'poll_task']);

/** The manifest's guests. */
export function guests(): Guest[] {
  return readManifest();
}

/** The manifest's guest of that name. Throws where there is none. */
export function guest(name: string): Guest {
  return findGuest(name);
}

/** Absolute path of the guest's ELF, which is unpacked and verified first where it is not there yet. */
export function elfPath(name: string): string {
  return unpack(findGuest(name));
}

/** argv that boots the guest: program, arguments, then `extra` (as ['-s', '-S'] or ['-icount', 'shift=0']). */
export function qemuArgv(name: string, extra: readonly string[] = []): [program: string, ...args: string[]] {
  const { qemu } = findGuest(name);
  const [program = '', ...args] = qemu.map((arg) => (arg === '{elf}' ? elfPath(name) : arg));
  return [program, ...args, ...extra];
}

/** Absolute path of a source file, given as in the DWARF: '/labkern/src/work.rs', or 'src/work.rs' of `kern`. */
export function sourcePath(file: string): string {
  const [, source = 'kern', path = file] = /^\/lab(\w+)\/(.*)$/.exec(file) ?? [];
  return join(DIR, source, path);
}

/**
 * Reads the guest's `LAB` lines out of everything its console printed, firmware messages included. A last line that
 * was cut off, as by killing QEMU, is left out.
 */
export function parseLab(consoleText: string): Lab {
  const stats = new Map<string, Count>();
  const tasks: LabTask[] = [];
  let boot: Lab['boot'];
  let cfg: Lab['cfg'];
  let exec: Lab['exec'];
  let heap: Lab['heap'];
  let checksum: string | undefined;
  const text = consoleText.replaceAll('\r', '');
  // Firmware may end without a line feed, so a line's first LAB may stand behind its last words.
  for (const [, kind = '', rest = ''] of text.matchAll(/LAB (\w+) ?(.*)\n/g)) {
    const words = rest.split(' ');
    const value = Object.fromEntries(words.filter((w) => w.includes('=')).map((w) => w.split('=', 2)));
    const count = (key: string): number => Number(value[key]);
    const [first = '', second = ''] = words;
    if (kind === 'boot') boot = { arch: value.arch, mode: value.mode };
    else if (kind === 'cfg') cfg = { iters: count('iters'), tasks: count('tasks'), sleeps: count('sleeps') };
    else if (kind === 'stat') stats.set(first, { calls: count('calls'), polls: count('polls') });
    else if (kind === 'task') tasks.push({ id: Number(first), name: second, polls: count('polls') });
    else if (kind === 'heap') heap = { allocs: count('allocs'), frees: count('frees') };
    else if (kind === 'checksum') checksum = first;
    else if (kind === 'exec') {
      exec = {
        spawned: count('spawned'),
        polls: count('polls'),
        wakes: count('wakes'),
        irqWakes: count('irq_wakes'),
        ticks: count('ticks'),
      };
    }
  }
  const [, panic] = text.split(/LAB PANIC (?:panicked at )?/);
  // QEMU may end before it has passed on the last line feed.
  const done = /LAB done\b/.test(text);
  return {
    boot,
    cfg,
    stats,
    tasks,
    exec,
    heap,
    checksum,
    done,
    ...(panic === undefined ? {} : { panic: panic.trim() }),
  };
}
