// What BTF says of functions, against what DWARF says of the same ones.
import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import t, { type Test } from 'tap';
import { architectureNamed } from '../../src/arch/index.js';
import { Budget } from '../../src/base/budget.js';
import { RsptraceError } from '../../src/base/errors.js';
import { DebugInfo } from '../../src/dwarf/index.js';
import { btfFunctions, btfMember, ElfFile } from '../../src/elf/index.js';
import type { FunctionProbe } from '../../src/probes/describer.js';
import { type ProbeSpec, parseProbe } from '../../src/probes/index.js';
import { resolveFunctions } from '../../src/probes/resolve-functions.js';
import { scratchFolder } from '../support/command.js';

const budget = new Budget('vmlinux', 1 << 20);

const names = [
  ...['none', 'scalars', 'six', 'seven', 'variadic', 'by_small', 'by_large', 'gives_pair', 'gives_large'],
] as const;

async function compiled(t: Test, debug: '-g' | '-gbtf'): Promise<{ elf: ElfFile; probes: Map<string, FunctionProbe> }> {
  const path = join(scratchFolder(t), 'program');
  const source = resolve(import.meta.dirname, '../support/programs/prototypes.c');
  execFileSync('gcc', [debug, '-O1', '-no-pie', '-fcf-protection=none', '-o', path, source]);
  const elf = await ElfFile.open(path);
  const info = elf.has('.debug_info') ? DebugInfo.load(elf) : undefined;
  t.equal(info === undefined, debug === '-gbtf');
  const arch = architectureNamed('i386:x86-64');
  if (!arch) throw new Error('no x86_64');
  await arch.prepare();
  const { probes } = resolveFunctions(
    elf,
    info,
    arch,
    names.map((name) => parseProbe(`fn:${name}`) as ProbeSpec),
  );
  return { elf, probes: new Map(probes.map((probe) => [probe.ref.name, probe])) };
}

t.test('the same arguments in the same registers, and the same on the stack', async (t) => {
  const { probes: dwarf } = await compiled(t, '-g');
  const { probes: btf } = await compiled(t, '-gbtf');
  for (const name of names) {
    const [told, known] = [btf.get(name), dwarf.get(name)];
    t.equal(told?.stackArguments, known?.stackArguments, `${name}: ${known?.stackArguments}`);
    t.strictSame(
      told?.arguments.map((each) => each.name),
      known?.arguments.map((each) => each.name),
      name,
    );
    const registers = (probe: FunctionProbe | undefined): (string | undefined)[] =>
      (probe?.arguments ?? []).map(({ where }) =>
        where.kind === 'registers' ? where.parts.map(({ register }) => register).join() : undefined,
      );
    // Behind an aggregate BTF's reader says no place.
    for (const [index, register] of registers(told).entries()) {
      if (register !== undefined) t.equal(register, registers(known)[index], `${name}: ${index}`);
      else t.ok(registers(known)[index] === undefined || name.startsWith('by_'), 'left out only there');
    }
  }
});

t.test('members of structs are where the compiler has put them', async (t) => {
  const path = join(scratchFolder(t), 'members');
  const source = `
    #include <stddef.h>
    #include <stdio.h>
    struct inner { long flags; char few; unsigned cpu; unsigned low : 3, high : 5; };
    struct outer { short first; struct inner info; char text[2500]; struct inner far; int bits : 7; };
    struct outer o;
    int main(void) { printf("%zu %zu %zu", offsetof(struct outer, info.cpu), offsetof(struct outer, far.cpu), offsetof(struct inner, few)); }`;
  execFileSync('gcc', ['-gbtf', '-x', 'c', '-o', path, '-'], { input: source });
  const section = (await ElfFile.open(path)).section('.BTF') ?? new Uint8Array(0);
  const at = [
    btfMember(section, budget, 'outer', ['info', 'cpu']),
    btfMember(section, budget, 'outer', ['far', 'cpu']),
    btfMember(section, budget, 'inner', ['few']),
  ];
  t.equal(at.join(' '), execFileSync(path).toString());
  for (const path of [['bits'], ['info', 'low'], ['info', 'high'], ['none'], ['first', 'cpu'], ['info', 'none'], []]) {
    t.equal(btfMember(section, budget, 'outer', path), undefined, path.join('.'));
  }
  t.equal(btfMember(section, budget, 'nothing', ['cpu']), undefined);
});

t.test('a damaged section is an error of its own, whatever stands in it', async (t) => {
  const { elf } = await compiled(t, '-gbtf');
  const section = elf.section('.BTF') ?? new Uint8Array(0);
  t.ok(section.length > 100);
  for (let at = 0; at < section.length; at++) {
    for (const value of [0, 0x7f, 0xff]) {
      const damaged = section.slice();
      damaged[at] = value;
      try {
        const functions = btfFunctions(damaged, budget);
        for (const name of names) functions(name);
        btfMember(damaged, budget, 'large', ['a']);
      } catch (error) {
        if (!(error instanceof RsptraceError)) t.fail(`${at}: ${error}`);
      }
    }
  }
  t.throws(() => btfFunctions(section.slice(0, section.length - 1), budget), { code: 'BTF_DAMAGED' });
  t.throws(() => btfFunctions(section.slice(0, 10), budget), { code: 'INPUT_DAMAGED' });
});
