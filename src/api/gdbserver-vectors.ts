/*
 * gdbserver reads the registers of every thread at a stop, and writes them back when the process goes on. Before GDB 14
 * it takes the upper vector registers of AVX-512 to lie elsewhere than they do. A thread that was stopped in the middle
 * of glibc's memcpy then copies other bytes. Its program goes wrong, under GDB as well. Mended by "gdbserver:
 * i387_cache_to_xsave: fix copy dest of zmm registers" (sourceware bug 30818), and for AMD by "Handle variable XSAVE
 * layouts".
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The first version of GDB whose gdbserver writes them where they belong. */
const firstRight = 14;

/** glibc, with this in GLIBC_TUNABLES, uses no AVX-512. */
const withoutAvx512 = 'glibc.cpu.hwcaps=-AVX512F,-AVX512VL';

/** Its copying functions for AVX512VL use the upper registers without AVX512F, too (ifunc-memmove.h). */
function isWithout(tunables: string): boolean {
  const words = /\bhwcaps=([^\s:]*)/.exec(tunables)?.[1]?.split(',') ?? [];
  return ['-AVX512F', '-AVX512VL'].every((word) => words.includes(word));
}

/**
 * What the user must know before a process with this value of GLIBC_TUNABLES comes under the gdbserver of this machine;
 * undefined if that is nothing.
 */
export function vectorDamage(tunables = ''): string | undefined {
  const version = isWithout(tunables) ? undefined : wrongVersion();
  return version === undefined
    ? undefined
    : `${damageOf(version)}, or start the program with GLIBC_TUNABLES=${withoutAvx512}`;
}

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** How a program is to be started under the gdbserver of this machine, and what its user must know of that. */
interface UnharmedStart {
  readonly environment: Environment;
  readonly warning: string | undefined;
}

/**
 * Where AVX-512 would go wrong, glibc is set not to use it. What the user has chosen stays.
 *
 * @param wrong the version of a gdbserver that does wrong
 */
export function unharmedStart(environment: Environment, wrong: () => number | undefined = wrongVersion): UnharmedStart {
  const version = wrong();
  const { GLIBC_TUNABLES: tunables = '' } = environment;
  if (version === undefined || isWithout(tunables)) return { environment, warning: undefined };
  if (/\bhwcaps=/.test(tunables)) return { environment, warning: damageOf(version) };
  const all = tunables === '' ? withoutAvx512 : `${tunables}:${withoutAvx512}`;
  const warning = `the program is started with GLIBC_TUNABLES=${all}, because ${damageOf(version)}`;
  return { environment: { ...environment, GLIBC_TUNABLES: all }, warning };
}

function damageOf(version: number): string {
  return `gdbserver ${version} changes vector registers of AVX-512 at stops, and code that uses them may go wrong: take that of GDB ${firstRight} or newer`;
}

/** Undefined if nothing is wrong here. */
function wrongVersion(): number | undefined {
  const version = hasAvx512() ? gdbserverVersion() : undefined;
  return version === undefined || version >= firstRight ? undefined : version;
}

function hasAvx512(): boolean {
  try {
    return /^flags\s*:.*\bavx512f\b/m.test(readFileSync('/proc/cpuinfo', 'latin1'));
  } catch {
    return false;
  }
}

/** The major version, as `GNU gdbserver (Debian 13.1-3) 13.1` says. */
function gdbserverVersion(): number | undefined {
  try {
    const text = execFileSync('gdbserver', ['--version'], { encoding: 'latin1', stdio: ['ignore', 'pipe', 'ignore'] });
    return majorVersion(text);
  } catch {
    // That it is not there is said when it is started.
    return undefined;
  }
}

/** Of the first line of `--version`: its last word. */
export function majorVersion(text: string): number | undefined {
  const [, major] = /^GNU gdbserver .*\s(\d+)(?:[.\d]*)\S*\s*$/m.exec(text) ?? [];
  return major === undefined ? undefined : Number(major);
}
