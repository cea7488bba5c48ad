// A traced QEMU that outlives the rsptrace that started it.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import { elfPath, type Lab, parseLab, qemuArgv } from '../qemu/guests/guests.js';
import { type Running, rsptraceProcess, scratchFolder } from './command.js';
import { killAlone } from './kill.js';

export interface TracedQemu {
  readonly tracer: Running;
  /** Of QEMU; undefined when it has ended already. */
  readonly pid: number | undefined;
  /** Where its stub listens. */
  readonly socket: string;
  /** `running` or why its guest stands; undefined when it has ended. Asked of QEMU itself, not of its stub, which would stop it. */
  status(): Promise<string | undefined>;
  /** Kills rsptrace and its supervisor: nobody cleans up. */
  orphan(): Promise<void>;
  /** Halts QEMU itself, so that its guest does not end meanwhile; `thaw` lets it go on. */
  freeze(): void;
  thaw(): void;
  /** Waits for QEMU's end. */
  ended(): Promise<void>;
  /** What the guest printed, written by QEMU itself. */
  lab(): Lab;
}

/**
 * `rsptrace run` without stops, when its trampolines are installed. QEMU is killed when the test ends. `machine`: more
 * words of QEMU's.
 */
export async function tracedQemu(
  t: Test,
  name: string,
  options: readonly string[] = [],
  machine: readonly string[] = [],
): Promise<TracedQemu> {
  const folder = scratchFolder(t);
  const [text, monitor] = [join(folder, 'console'), join(folder, 'qmp')];
  const command = qemuArgv(name, ['-serial', `file:${text}`, '-qmp', `unix:${monitor},server=on,wait=off`, ...machine]);
  const record = [
    '--log',
    'info',
    '--engine',
    'target',
    '--keep-running',
    '-o',
    join(folder, 'out.pftrace'),
    ...options,
  ];
  const tracer = rsptraceProcess('run', ...record, elfPath(name), '--', ...command);
  await tracer.shows('trampolines are installed');
  const { pid, socket } = childOf(tracer);
  const gone = (): boolean => pid === undefined || !isAlive(pid);
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => {
    if (pid !== undefined && isAlive(pid)) process.kill(pid, name);
  };
  t.teardown(() => {
    tracer.process.kill('SIGKILL');
    if (pid !== undefined && isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  return {
    tracer,
    pid,
    socket,
    status: () => statusOf(monitor),
    async orphan() {
      const { process: child } = tracer;
      // Not the end of its output: QEMU writes to the same.
      const exit = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      killAlone(tracer);
      await exit;
    },
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    async ended() {
      while (!gone()) await sleep(20);
    },
    lab: () => parseLab(readFileSync(text, 'latin1')),
  };
}

function childOf({ process: { pid } }: Running): { readonly pid: number | undefined; readonly socket: string } {
  try {
    const child = Number(execFileSync('pgrep', ['-P', String(pid), 'qemu-system'], { encoding: 'utf8' }));
    const words = readFileSync(`/proc/${child}/cmdline`, 'utf8').split('\0');
    const socket = words.map((word) => /^socket,path=([^,]+),.*id=rsptrace/.exec(word)?.[1]).find((path) => path);
    return { pid: child, socket: socket ?? '' };
  } catch {
    return { pid: undefined, socket: '' };
  }
}

/** A process that nobody has waited for is dead too. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

function statusOf(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createConnection(path, () => {
      socket.write('{"execute":"qmp_capabilities"}{"execute":"query-status"}');
    });
    let said = '';
    socket.setEncoding('utf8').on('data', (text) => {
      said += text;
      const status = /"status": "([a-z-]+)"/.exec(said)?.[1];
      if (status === undefined) return;
      socket.destroy();
      resolve(status);
    });
    socket.on('error', () => resolve(undefined));
    socket.on('close', () => resolve(undefined));
  });
}
