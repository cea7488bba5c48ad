import { readFileSync } from 'node:fs';
import { architectureOf } from '../../src/arch/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { type Breakpoint, connect, type Session } from '../../src/rsp/index.js';
import { rsptrace } from './command.js';

export interface Doctored {
  readonly stub: {
    readonly server: string;
    readonly server_version: string | null;
    readonly packet_size: number;
    readonly no_ack: boolean;
    readonly vcont: readonly string[];
    readonly breakpoints: readonly number[];
    readonly hardware_breakpoints: number | null;
    readonly memory_map: readonly { readonly type: string; readonly start: string }[] | null;
  };
  readonly target: { readonly arch: string | null; readonly registers: number; readonly never_started: boolean };
  readonly hart_count: number;
  readonly harts_unseen: number;
  readonly harts: readonly {
    readonly id: string;
    readonly pc: string | null;
    readonly function: string | null;
    readonly mode: string | null;
    readonly paging: { readonly scheme: string; readonly root: string | null } | null;
    readonly registers: readonly { readonly name: string; readonly value: string; readonly meaning: string }[];
  }[];
  readonly clocks: readonly { readonly name: string; readonly chosen: boolean; readonly resolution_ns: number }[];
  readonly times: {
    readonly [name in 'round_trip' | 'registers' | 'memory_4k']: { readonly median_us: number } | null;
  };
  readonly hits: {
    readonly per_second: number | null;
    readonly hits: number | null;
    readonly address: string | null;
    readonly function: string | null;
    readonly guest_ended: boolean;
    readonly why?: string;
  };
  readonly program: {
    readonly compared: number;
    readonly same: number;
    readonly load_bias: string;
    readonly problem: { readonly code: string } | null;
    readonly no_probes: { readonly code: string } | null;
    readonly scratch: { readonly refused?: string; readonly source?: string } | null;
    readonly hurdles: readonly { readonly code: string }[];
    readonly engines: object;
    readonly probes: readonly { readonly function: string; readonly address: string; readonly engine: string }[];
  } | null;
  readonly advice: readonly { readonly code: string; readonly text: string }[];
}

/** Runs the command with --json; its object, status and stderr. */
export async function runDoctor(
  remote: string,
  ...args: string[]
): Promise<{ readonly found: Doctored; readonly status: number | null; readonly stderr: string }> {
  const { status, stdout, stderr } = await rsptrace('doctor', '-r', remote, '--json', ...args).ended;
  if (stdout === '') throw new Error(`status ${status}: ${stderr}`);
  return { found: JSON.parse(stdout) as Doctored, status, stderr };
}

/** Lets the guest run to an address, and leaves it standing there with no breakpoint; what QEMU's monitor says of it then. */
export async function standAt(socket: string, address: Session['breakpoints'][number]): Promise<string> {
  const session = await connect(`unix:${socket}`, { waitMs: 60_000 });
  await session.insertBreakpoint(address);
  await session.resume();
  await session.removeBreakpoint(address);
  const said = (await session.monitor('info registers')) ?? '';
  session.close();
  return said;
}

/** Addresses of software breakpoints that a recorded wire inserts and removes, in order. */
export function wireBreakpoints(path: string): { readonly inserted: string[]; readonly removed: string[] } {
  const sent = readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as { to?: string; text?: string }]))
    .filter(({ to }) => to === 'stub')
    .map(({ text }) => text ?? '')
    .join('');
  const of = (packet: string): string[] =>
    [...sent.matchAll(new RegExp(`\\$${packet}0,([0-9a-f]+),`, 'g'))].map(([, address = '']) => address);
  return { inserted: of('Z'), removed: of('z') };
}

/** A software breakpoint at a symbol of an ELF. */
export async function breakpointAt(path: string, symbol: string): Promise<Breakpoint> {
  const elf = await ElfFile.open(path);
  const address = elf.symbols.named(symbol)[0]?.address;
  const code = address && elf.bytesAt(address, 4);
  const arch = architectureOf(elf.machine);
  if (address === undefined || code === undefined || arch === undefined) throw new Error(`no ${symbol}`);
  return { type: 0, address, kind: arch.breakpointKind(code) };
}

/** `satp     8000...` of riscv64, `CR3=0020b000` of x86. */
export function monitored(said: string, name: string): bigint {
  const found = new RegExp(`\\b${name}(?: +|=)([0-9a-f]+)`, 'i').exec(said)?.[1];
  if (found === undefined) throw new Error(`no ${name} in:\n${said}`);
  return BigInt(`0x${found}`);
}
