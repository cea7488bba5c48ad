import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Architecture } from '../../src/arch/index.js';

const assemblerOptions: Readonly<Record<string, readonly string[]>> = {
  riscv64: ['-march=rv64gc', '-mno-relax'],
  x86_64: ['-msyntax=intel', '-mnaked-reg'],
  aarch64: ['-march=armv8.5-a'],
};

interface Assembled {
  readonly bytes: Uint8Array;
  /** Names of places, and how far from the first byte each of them is. */
  readonly labels: readonly [string, number][];
}

/** The machine code of a text for `as`, and its labels, or those of them that are asked for. */
export function assemble({ name }: Pick<Architecture, 'name'>, source: string, wanted = /^/): Assembled {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-assembled-'));
  try {
    const prefix = name === 'x86_64' ? '' : `${name}-linux-gnu-`;
    const options = assemblerOptions[name] ?? [];
    const [object, raw] = [join(folder, 'a.o'), join(folder, 'a.bin')];
    execFileSync(`${prefix}as`, [...options, '-o', object, '-'], { input: `.text\n${source}\n` });
    execFileSync(`${prefix}objcopy`, ['-O', 'binary', '-j', '.text', object, raw]);
    const names = execFileSync(`${prefix}nm`, [object], { encoding: 'utf8' });
    const labels = [...names.matchAll(/^([0-9a-f]+) t (.*)$/gm)];
    return {
      bytes: readFileSync(raw),
      labels: labels.flatMap(([, at = '', label = '']): [string, number][] =>
        wanted.test(label) ? [[label, Number.parseInt(at, 16)]] : [],
      ),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
