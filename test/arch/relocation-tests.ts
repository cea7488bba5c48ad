// What holds for first instructions on each architecture with loads and stores: the reasons for which they stay, and patches.
import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import t from 'tap';
import type { Displaced, PatchKind } from '../../src/arch/inject/displaced.js';
import type { ProbeCode } from '../../src/arch/inject/probe-code.js';
import { type Addr, addr } from '../../src/base/addr.js';
import { elfPath } from '../qemu/guests/guests.js';
import { disassemble, type Line } from './objdump.js';

export interface TestFunction {
  readonly name: string;
  readonly start: Addr;
  readonly lines: readonly Line[];
  readonly code: Uint8Array;
}

/** The functions of an ELF, as readelf and objdump see them. */
export function functionsOf(
  arch: Parameters<typeof disassemble>[0],
  guest: string,
  change = (line: Line): Line => line,
): TestFunction[] {
  const file = elfPath(guest);
  const lines = disassemble(arch, file).map(change);
  const indexes = new Map(lines.map(({ address }, index) => [address, index]));
  const symbols = execFileSync('readelf', ['-sW', file], { encoding: 'latin1', maxBuffer: 1 << 28 });
  const functions = new Map<bigint, TestFunction>();
  for (const [, value = '', size = '', name = ''] of symbols.matchAll(/: ([0-9a-f]{16}) +(\d+) FUNC .* (\S+)$/gm)) {
    const start = addr(BigInt(`0x${value}`));
    const end = start + BigInt(size);
    const index = indexes.get(start);
    if (index === undefined || end === start) continue;
    const own = lines.slice(index).slice(0, Number(size));
    const behind = own.findIndex(({ address }) => address >= end);
    const body = own.slice(0, behind);
    functions.set(start, { name, start, lines: body, code: Uint8Array.from(body.flatMap(({ bytes }) => [...bytes])) });
  }
  return [...functions.values()];
}

interface Relocating {
  readonly code: ProbeCode;
  readonly assemble: (text: string, at: bigint) => Uint8Array;
  readonly start: Addr;
  /** Functions whose instructions stay, with the reason; and such that are moved. */
  readonly stay: readonly (readonly [kind: PatchKind, text: string, reason: RegExp])[];
  readonly move: readonly (readonly [kind: PatchKind, text: string])[];
  /** Functions that must not be hooked, with the reason; and such that may be, though they return elsewhere. */
  readonly unhooked: readonly (readonly [text: string, reason: RegExp])[];
  readonly hooked: string;
  /** Functions, and the bytes before their patch. */
  readonly patched: readonly (readonly [text: string, before: bigint])[];
  /** The part of its reach by which a patch is tried backwards, where memory begins. */
  readonly backwards: bigint;
  /** How far away a patch cannot lead, beyond what it reaches. */
  readonly beyond: bigint;
  readonly noPatches: readonly string[];
  readonly examples?: [Uint8Array, PatchKind][];
}

export function relocationTests(given: Relocating): void {
  const { code: probeCode, assemble, start } = given;
  const displace = (text: string, kind: PatchKind = 'near') => probeCode.displace(assemble(text, start), start, kind);

  t.test('what cannot be moved is refused, with the reason', async (t) => {
    for (const [kind, text, reason] of given.stay) {
      const found = displace(text, kind);
      t.match('refused' in found ? found.refused : 'not refused', reason, `${kind} ${text}`);
    }
    for (const [kind, text] of given.move) t.notOk('refused' in displace(text, kind), `${kind} ${text}`);
  });

  t.test('a function whose return is none must not be hooked', async (t) => {
    const refusal = (text: string): string | undefined => {
      const found = displace(text);
      return 'refused' in found ? found.refused : found.hookRefused;
    };
    for (const [text, reason] of given.unhooked) t.match(refusal(text), reason, text);
    t.equal(refusal(given.hooked), undefined);
  });

  t.test('a patch jumps to its trampoline, behind a landing pad, and is known again', async (t) => {
    for (const [text, before] of given.patched) {
      for (const { kind, bytes, reach } of probeCode.patches) {
        const found = displace(text, kind) as Displaced;
        t.equal(found.start, start + before);
        t.equal(found.patchLength, bytes);
        for (const distance of [BigInt(reach), -BigInt(reach) / given.backwards, 0x1234n]) {
          const to = addr(found.start + (distance & ~3n));
          const patch = probeCode.patch(found, to);
          t.equal(patch.length, bytes);
          t.equal(probeCode.patchTarget(patch, found.start), to);
        }
        t.throws(() => probeCode.patch(found, addr(found.start + BigInt(reach) + given.beyond)), RangeError);
      }
    }
    for (const text of given.noPatches) t.equal(probeCode.patchTarget(assemble(text, start), start), undefined, text);
    t.equal(probeCode.patchTarget(new Uint8Array(3), start), undefined);
  });

  t.test('any bytes are displaced or refused', async (t) => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.constantFrom<PatchKind>('near', 'far'), (code, kind) => {
        const found = probeCode.displace(code, start, kind);
        if ('refused' in found) return found.refused.length > 0;
        const isLong = found.length >= found.patchLength && found.length <= code.length;
        return isLong && found.relocate(addr(start + 0x1000n)).length >= found.length;
      }),
      { seed: 3, numRuns: 5_000, ...(given.examples && { examples: given.examples }) },
    );
    t.pass();
  });
}
