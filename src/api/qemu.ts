import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RsptraceError } from '../base/errors.js';
import { Supervisor } from './supervisor.js';

/**
 * A QEMU that rsptrace started: frozen at its first instruction, its stub on a unix socket that no other program can
 * take.
 */
export interface Qemu extends Disposable {
  readonly socket: string;
  /** Sends it a signal. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
  /** Resolves when it has ended, with what a shell would say of it. */
  readonly ended: Promise<{ readonly status: number | null; readonly signal: string | null; readonly text: string }>;
  readonly running: boolean;
  /** The last lines that it has written to stderr. */
  readonly lastLines: readonly string[];
}

interface QemuOptions {
  /** Is run if rsptrace is killed, with the stub's address as its last word; else QEMU is ended then. */
  readonly cleanUp?: readonly string[] | undefined;
  /** Its console reads what rsptrace is given, unless that is a terminal. Default: true. */
  readonly hasInput?: boolean;
}

/** How many bytes of QEMU's stderr are kept, and how many lines are shown if it ends too early. */
const mostSaid = 2000;
const linesTold = 3;

/**
 * Ends what has the socket of a folder in its command line, also if it is only about to be started; a process; the
 * folder.
 */
const ends = `
for _ in 1 2 3 4 5 6 7 8 9 10; do
  for found in $(grep -ls "\${1##*/}/gdb[,]" /proc/[0-9]*/cmdline); do
    pid=\${found#/proc/}
    kill -KILL "\${pid%/*}"
  done
  sleep 0.03
done
[ -z "$2" ] || kill -KILL "$2"
rm -rf "$1"`;

/** Longest path that fits sun_path on Linux. */
const socketPathMax = 107;

/**
 * Starts `command` with `-S` and a gdb chardev added. Its console goes to `onConsole`; its stderr passes through. It
 * runs in a process group of its own, so that Ctrl-C ends the recording and not the guest.
 * @throws RsptraceError `RUN_NO_COMMAND`, `RUN_NOT_FOUND`, `RUN_HAS_STUB`
 */
export async function startQemu(
  command: readonly string[],
  onConsole: (text: Uint8Array) => void,
  { cleanUp, hasInput = true }: QemuOptions,
): Promise<Qemu> {
  const { program, args } = checkCommand(command);
  const folder = socketFolder();
  const socket = join(folder, 'gdb');
  // In QEMU's option syntax a comma is written twice.
  const chardev = `socket,path=${socket.replaceAll(',', ',,')},server=on,wait=off,id=rsptrace`;
  const console = new ConsolePipe(join(folder, 'console'), onConsole);
  const supervisor = new Supervisor(
    cleanUp ? [...cleanUp, `unix:${socket}`] : ['sh', '-c', ends, 'rsptrace-ends', folder],
  );
  const child = spawn(program, [...args, '-S', '-chardev', chardev, '-gdb', 'chardev:rsptrace'], {
    stdio: [process.stdin.isTTY || !hasInput ? 'ignore' : 'inherit', console.writeEnd, 'pipe'],
    detached: true,
  });
  // Also one that is a script, and becomes a program without these words.
  if (!cleanUp && child.pid !== undefined) supervisor.add(String(child.pid));
  const lastLines = keepLastLines(child);
  let running = true;
  const ended = new Promise<Awaited<Qemu['ended']>>((resolve) => {
    child.once('exit', async (status, signal) => {
      running = false;
      supervisor.dismiss();
      await console.drained();
      if (child.stderr?.closed === false) await once(child.stderr, 'close');
      rmSync(folder, { recursive: true, force: true });
      resolve({ status, signal, text: signal === null ? `status ${status}` : `signal ${signal}` });
    });
  });
  await spawned(child, program).catch((thrown: unknown) => {
    supervisor.dismiss();
    console.drained();
    rmSync(folder, { recursive: true, force: true });
    throw thrown;
  });
  return {
    socket,
    kill: (signal) => void child.kill(signal),
    ended,
    get running() {
      return running;
    },
    get lastLines() {
      return lastLines();
    },
    [Symbol.dispose]() {
      if (running) child.kill('SIGKILL');
    },
  };
}

/** @throws RsptraceError `RUN_NO_COMMAND`, `RUN_HAS_STUB` */
function checkCommand([program, ...args]: readonly string[]): {
  readonly program: string;
  readonly args: readonly string[];
} {
  if (program === undefined) {
    throw new RsptraceError('RUN_NO_COMMAND', 'there is no command to run', {
      hint: 'the ELF is no Linux program, so put its QEMU behind --: rsptrace run kernel.elf -- qemu-system-riscv64 -M virt -nographic -kernel kernel.elf',
    });
  }
  const own = args.find((arg) => /^--?(s|gdb)$/.test(arg));
  if (own !== undefined) {
    throw new RsptraceError(
      'RUN_HAS_STUB',
      `${own} is among the arguments, but \`rsptrace run\` adds a stub of its own`,
      {
        hint: `leave ${own} out, or start QEMU yourself and use --remote`,
      },
    );
  }
  return { program, args };
}

/** A new folder whose path leaves room for the name of a socket. */
function socketFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-'));
  if (join(folder, 'gdb').length <= socketPathMax) return folder;
  rmSync(folder, { recursive: true });
  return mkdtempSync('/tmp/rsptrace-');
}

/** Passes a child's stderr on. The result gives the last lines of it. */
function keepLastLines({ stderr }: ChildProcess): () => readonly string[] {
  let said = '';
  stderr?.on('data', (text: Buffer) => {
    process.stderr.write(text);
    said = `${said}${text.toString('utf8')}`.slice(-mostSaid);
  });
  return () => said.trim().split('\n').slice(-linesTold);
}

/** @throws RsptraceError `RUN_NOT_FOUND` */
async function spawned(child: ChildProcess, program: string): Promise<void> {
  try {
    await once(child, 'spawn');
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    const isMissing = code === 'ENOENT';
    throw new RsptraceError(
      'RUN_NOT_FOUND',
      isMissing ? `${program} is not installed` : `${program} cannot be started: ${message}`,
      isMissing && program.startsWith('qemu-system-')
        ? { hint: `on Debian: apt install ${packageOf(program)}` }
        : undefined,
    );
  }
}

/**
 * Reads QEMU's stdout through a real pipe. Node would use a socket, whose buffer takes only a few hundred of the
 * single bytes that a UART writes. Then the guest would spin until rsptrace has read, and no two runs would be alike.
 */
class ConsolePipe {
  readonly writeEnd: number;
  readonly #reader: Socket;
  readonly #closed: Promise<void>;
  #open = true;

  constructor(path: string, onText: (text: Uint8Array) => void) {
    execFileSync('mkfifo', [path]);
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    this.writeEnd = openSync(path, constants.O_WRONLY);
    this.#reader = new Socket({ fd: readEnd, readable: true, writable: false });
    this.#reader.on('data', onText);
    this.#reader.on('error', () => {});
    this.#closed = new Promise((resolve) => this.#reader.once('close', () => resolve()));
  }

  /** Resolves when everything that was written has been passed on; call it when no other process writes any more. */
  drained(): Promise<void> {
    if (this.#open) closeSync(this.writeEnd);
    this.#open = false;
    return this.#closed;
  }
}

/** Debian's package with a QEMU; `qemu-system` has all of them. */
function packageOf(program: string): string {
  if (/-(x86_64|i386)$/.test(program)) return 'qemu-system-x86';
  if (/-(aarch64|arm)$/.test(program)) return 'qemu-system-arm';
  return /-(riscv(32|64)|loongarch64)$/.test(program) ? 'qemu-system-misc' : 'qemu-system';
}
