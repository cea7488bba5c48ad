import fc from 'fast-check';
import type { Test } from 'tap';
import type { Architecture } from '../../src/arch/architecture.js';
import { addr } from '../../src/base/addr.js';
import { random, values } from './random.js';

const CODE = addr(0x1000_0000n);

function carried(architecture: Architecture, code: string): ReturnType<Architecture['emulate']> {
  return architecture.emulate(Buffer.from(code, 'hex'), CODE);
}

/** `refused`: instructions in hexadecimal by their text. */
export function mustBeStepped(t: Test, architecture: Architecture, refused: Readonly<Record<string, string>>): void {
  for (const [text, code] of Object.entries(refused)) t.equal(carried(architecture, code), undefined, text);
}

/** `codes`: one of each way to be carried out that needs a register. */
export function needsRegisters(t: Test, architecture: Architecture, codes: readonly string[]): void {
  const none = { register: () => undefined };
  for (const code of codes) {
    const found = carried(architecture, code);
    t.not(found, undefined, code);
    t.equal(found?.load?.(none).length ?? 0, 0, code);
    t.equal(found?.effects(none, new Uint8Array(8)), undefined, code);
    if (found?.load) t.equal(found.effects({ register: () => 4096n }), undefined, `${code}: nothing loaded`);
  }
}

export function neverThrows(t: Test, architecture: Architecture, lengths: fc.IntArrayConstraints): void {
  const value = values(random(3));
  const registers = { register: () => value() };
  const property = fc.property(fc.uint8Array(lengths), (bytes) => {
    const found = architecture.emulate(bytes, CODE);
    if (found !== undefined && found.length > bytes.length) throw new Error('past the end');
    const load = found?.load?.(registers);
    found?.effects(registers, load && new Uint8Array(load.length));
    found?.effects(registers, new Uint8Array(3));
    found?.effects({ register: () => undefined }, new Uint8Array(3));
    architecture.memoryAccess?.(bytes, registers);
  });
  fc.assert(property, { seed: 5, numRuns: 20_000 });
  t.pass();
}
