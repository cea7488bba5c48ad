// Every stub that the scenario runs on, started the way its users start it.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StubName } from '../../src/rsp/index.js';
import { type Ran, type Running, scratchFolder, start } from './command.js';
import { assemble, type CountedArch, type CountedOptions, type CountedProgram } from './counted-program.js';
import { long } from './long.js';
import { Board, IDCODE, ROM } from './riscv-hart/board.js';

type Test = Parameters<typeof scratchFolder>[0];

/** As much of a running process as the scenario needs. */
export interface Guest {
  readonly process: Pick<Running['process'], 'kill'>;
  readonly ended: Promise<Pick<Ran, 'status' | 'stdout'>>;
}

/** A stub that has just been started, with the counted program frozen at its first instruction. */
export interface StartedStub {
  readonly address: string;
  readonly program: CountedProgram;
  /** What runs the program and prints its output. */
  readonly guest: Guest;
}

export interface StubServer {
  /** As the table calls it. */
  readonly name: string;
  /** What `session.stub()` is to say. */
  readonly stub: StubName;
  /** The program whose version counts. */
  readonly binary: string;
  /** An address where nothing is. */
  readonly unmapped: bigint;
  /** It hears no interrupt while its program runs: its process needs a SIGINT. */
  readonly deaf?: boolean;
  /** The guest's own exit status cannot be seen. */
  readonly hidesStatus?: boolean;
  /** The program's output comes over the connection, so that there is none after leaving: it is run to its end. */
  readonly printsThroughStub?: boolean;
  readonly program: Omit<CountedOptions, 'calls'>;
  /** The program calls so often; a thousand times when nothing is said. */
  readonly start: (t: Test, calls?: number) => Promise<StartedStub>;
}

const CALLS = long ? 1000 : 300;

/** Where scripts/test has unpacked the backported QEMU, beside the one that is installed. */
const backported = resolve(import.meta.dirname, '../../.cache/backports/usr/bin/qemu-system-riscv64');

/** The installed QEMU, and the newer one. */
export const qemuVersions = ['qemu-system-riscv64', backported] as const;

function run(t: Test, program: string, args: readonly string[]): Running {
  const running = start(program, args);
  t.teardown(() => void running.process.kill('SIGKILL'));
  return running;
}

/** QEMU with a bare machine. */
export function qemuSystem(arch: CountedArch, smp: number, binary = `qemu-system-${arch}`): StubServer {
  // The x86 program leaves the other processors where the firmware would wake them.
  const options = { arch, place: 'machine', harts: arch === 'riscv64' ? smp : 1 } as const;
  return {
    name: `qemu-system-${arch} -smp ${smp}`,
    stub: 'qemu-system',
    binary,
    unmapped: arch === 'riscv64' ? 0x4000_0000_0000n : 0x40_0000_0000n,
    program: options,
    start: async (t, calls = CALLS) => {
      const folder = scratchFolder(t);
      const program = assemble(folder, { ...options, calls });
      const address = join(folder, 'gdb');
      const guest = run(t, binary, [
        ...(arch === 'riscv64' ? ['-M', 'virt', '-bios', 'none'] : ['-device', 'isa-debug-exit,iobase=0xf4,iosize=1']),
        ...['-nodefaults', '-display', 'none', '-serial', 'stdio', '-smp', `${smp}`, '-kernel', program.elf],
        ...['-S', '-chardev', `socket,path=${address},server=on,wait=off,id=gdb`, '-gdb', 'chardev:gdb'],
      ]);
      return { address, program, guest };
    },
  };
}

function qemuUser(arch: CountedArch): StubServer {
  const options = { arch, place: 'process' } as const;
  return {
    name: `qemu-${arch} -g`,
    stub: 'qemu-user',
    binary: `qemu-${arch}`,
    unmapped: 0x10n,
    deaf: true,
    program: options,
    start: async (t, calls = CALLS) => {
      const folder = scratchFolder(t);
      const program = assemble(folder, { ...options, calls });
      const address = join(folder, 'gdb');
      const guest = run(t, `qemu-${arch}`, ['-g', address, program.elf]);
      return { address, program, guest };
    },
  };
}

/** gdbserver and lldb-server: they start the program, or attach to one that waits. */
function native(name: 'gdbserver' | 'lldb-server', binary: string, how: 'start' | 'attach'): StubServer {
  const lldb = name === 'lldb-server';
  const attach = how === 'attach';
  const options = { arch: 'x86_64', place: 'process', waits: attach } as const;
  return {
    name: `${name}${attach ? ' --attach' : ''}`,
    stub: name,
    binary,
    unmapped: 0x10n,
    // It signals the process group that the program would lead, had a shell started it.
    hidesStatus: !attach,
    // A program that lldb-server has started prints through it, and has nowhere to print without it.
    printsThroughStub: lldb && !attach,
    program: options,
    start: async (t, calls = CALLS) => {
      const folder = scratchFolder(t);
      const program = assemble(folder, { ...options, calls });
      const waiting = attach ? run(t, program.elf, []) : undefined;
      const port = await freePort();
      const address = `127.0.0.1:${port}`;
      const what = waiting === undefined ? [program.elf] : [`${waiting.process.pid}`];
      const server = lldb
        ? run(t, 'lldb-server-14', ['gdbserver', address, attach ? '--attach' : '--', ...what])
        : run(t, 'gdbserver', ['--once', ...(attach ? ['--attach'] : []), address, ...what]);
      return { address, program, guest: waiting ?? server };
    },
  };
}

const vgdb: StubServer = {
  name: 'valgrind, through vgdb',
  stub: 'valgrind',
  binary: 'valgrind',
  unmapped: 0x10n,
  program: { arch: 'x86_64', place: 'process' },
  start: async (t, calls = CALLS) => {
    const folder = scratchFolder(t);
    const program = assemble(folder, { ...vgdb.program, calls });
    const prefix = `--vgdb-prefix=${join(folder, 'vgdb')}`;
    const guest = run(t, 'valgrind', ['--tool=none', '--vgdb=yes', '--vgdb-error=0', prefix, program.elf]);
    const [, pid] = await seen(guest, /--pid=(\d+)/);
    const port = await freePort();
    run(t, 'vgdb', ['--wait=20', prefix, `--pid=${pid}`, `--port=${port}`]);
    return { address: `127.0.0.1:${port}`, program, guest };
  },
};

/** Debian's OpenOCD, at a simulated board behind its remote_bitbang adapter. */
const openocd: StubServer = {
  name: 'OpenOCD, a JTAG hart',
  stub: 'openocd',
  binary: 'openocd',
  unmapped: 0x4000_0000n,
  program: { arch: 'riscv64', place: 'machine' },
  start: async (t, calls = CALLS) => {
    const folder = scratchFolder(t);
    const program = assemble(folder, { ...openocd.program, calls });
    const board = await startBoard(t, folder, program.elf);
    const address = await startOpenocd(t, folder);
    const ended = board.ended.then((status) => ({ status, stdout: board.output }));
    return { address, program, guest: { process: { kill: () => false }, ended } };
  },
};

const socketOf = (folder: string): string => join(folder, 'jtag');

export async function startBoard(t: Test, folder: string, elf: string): Promise<Board> {
  const board = new Board(elf);
  t.teardown(() => board.close());
  await board.listen(socketOf(folder));
  return board;
}

/** Waits for a server that does not say when it listens: proc_pid_net(5), state 0A. */
export async function untilListens(port: number): Promise<void> {
  const listens = new RegExp(`:${port.toString(16).padStart(4, '0')} \\S+ 0A `, 'i');
  while (!listens.test(readFileSync('/proc/net/tcp', 'latin1'))) await sleep(10);
}

/** Starts OpenOCD at the board of a folder; returns where gdb clients connect. */
export async function startOpenocd(t: Test, folder: string, ...commands: string[]): Promise<string> {
  const port = await freePort();
  const config = join(folder, 'openocd.cfg');
  writeFileSync(
    config,
    `adapter driver remote_bitbang
remote_bitbang host ${socketOf(folder)}
remote_bitbang port 0
transport select jtag
jtag newtap board cpu -irlen 5 -expected-id 0x${IDCODE.toString(16)}
target create board.cpu riscv -chain-position board.cpu
riscv set_mem_access sysbus
# Code in ROM is told to gdb by way of a flash bank.
flash bank rom faux 0x${ROM.toString(16)} 0x10000 0 0 board.cpu
gdb_port ${port}
telnet_port disabled
tcl_port disabled
gdb_memory_map enable
gdb_flash_program disable
${commands.join('\n')}
init
halt
# By itself OpenOCD looks every 100 ms whether the hart has halted.
proc look_often {} { poll; after 1 look_often }
look_often
`,
  );
  const server = run(t, 'openocd', ['-f', config]);
  await server.shows('Listening on port');
  return `127.0.0.1:${port}`;
}

export const stubServers: readonly StubServer[] = [
  qemuSystem('riscv64', 1),
  qemuSystem('riscv64', 4),
  qemuSystem('riscv64', 1, backported),
  qemuSystem('riscv64', 4, backported),
  qemuSystem('x86_64', 1),
  qemuSystem('x86_64', 4),
  qemuUser('riscv64'),
  qemuUser('x86_64'),
  native('gdbserver', 'gdbserver', 'start'),
  native('gdbserver', 'gdbserver', 'attach'),
  native('lldb-server', 'lldb-14', 'start'),
  native('lldb-server', 'lldb-14', 'attach'),
  vgdb,
  openocd,
];

/** The version that a program says it has, without a distribution's additions: `7.2`. */
export function versionOf(binary: string): string {
  if (binary.startsWith('/') && !existsSync(binary)) throw new Error(`${binary} is missing: run scripts/test`);
  // OpenOCD says it on stderr.
  const { stdout, stderr } = spawnSync(binary, ['--version'], { encoding: 'utf8' });
  const text = stdout + stderr;
  const version = /\b(\d+\.\d+)(?:\.\d+)?\b/.exec(text)?.[1];
  if (version === undefined) throw new Error(`${binary} does not say its version: ${text}`);
  return version;
}

/** Waits for what a program prints, on either of its outputs. */
export function seen(running: Running, pattern: RegExp): Promise<RegExpExecArray> {
  return new Promise((done, reject) => {
    let text = '';
    const look = (chunk: string): void => {
      text += chunk;
      const match = pattern.exec(text);
      if (match !== null) done(match);
    };
    running.process.stdout?.on('data', look);
    running.process.stderr?.on('data', look);
    void running.ended.then(({ stdout, stderr }) => reject(new Error(`it ended with:\n${stdout}${stderr}`)));
  });
}

/** A TCP port that nobody listened at a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => done(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** Why rr cannot record on this machine, in its own words; undefined where it can. It needs counters that few virtual machines have. */
export function whyNoRr(): string | undefined {
  const { status, stdout, stderr } = spawnSync(
    'rr',
    ['record', '--output-trace-dir', join(tmpdir(), 'rsptrace-rr'), 'true'],
    {
      encoding: 'utf8',
    },
  );
  rmSync(join(tmpdir(), 'rsptrace-rr'), { recursive: true, force: true });
  return status === 0
    ? undefined
    : (`${stderr}${stdout}`.split('\n').find((line) => line !== '') ?? `it ends with status ${status}`);
}
