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

/**
 * What the user must know before a process with this environment comes under the gdbserver of this machine; undefined
 * if that is nothing.
 */
export function vectorDamage(environment: string): string | undefined {
  if (WITHOUT_AVX512.test(environment)) return undefined;
  const version = hasAvx512() ? gdbserverVersion() : undefined;
  if (version === undefined || version >= firstRight) return undefined;
  return `gdbserver ${version} changes vector registers of AVX-512 at stops, and the program may go wrong: take that of GDB ${firstRight} or newer, or start the program with GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL`;
}

/** What the sentence asks for. */
const WITHOUT_AVX512 = /^GLIBC_TUNABLES=.*\bhwcaps=\S*-AVX512F\b/m;

function hasAvx512(): boolean {
  try {
    return /^flags\s*:.*\bavx512f\b/m.test(readFileSync('/proc/cpuinfo', 'latin1'));
  } catch {
    return false;
  }
}

/** The major version, as `GNU gdbserver (Debian 13.1-3) 13.1` tells. */
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
