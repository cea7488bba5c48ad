// `rsptrace doctor --trampolines`: what it prints of code is what objdump says of the same bytes.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import {
  examineTrampolines,
  madeUpScratch,
  type TrampolineReport,
  type trampolinesJson,
} from '../../src/doctor/index.js';
import { planEngines } from '../../src/engines/index.js';
import { parseProbe } from '../../src/probes/index.js';
import { enginePlan, prepare } from '../../src/record/index.js';
import { disassemble, disassembleBytes, type Line, type Machine } from '../arch/objdump.js';
import { expected as riscvWords } from '../arch/riscv64-words.js';
import { elfPath } from '../qemu/guests/guests.js';
import { rsptrace } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC } from '../support/native.js';

type CodeLine = TrampolineReport['probes'][number]['displaced'][number];

async function layouts(elf: string, at?: bigint): Promise<TrampolineReport> {
  const program = await prepare(elf, [parseProbe('poll:**'), parseProbe('fn:labkern::exec::*')]);
  const plan = enginePlan(program);
  const scratch = madeUpScratch(program.elf, planEngines(plan), 'nothing runs', at === undefined ? at : addr(at));
  return examineTrampolines({ elf: program.elf, arch: program.arch, plan }, scratch);
}

/**
 * Capstone and objdump differ in spaces, in the base of small numbers, in negative distances, and in how a jump names
 * its target.
 */
function x86Words(text: string): string {
  return (
    text
      .toLowerCase()
      .replace(/\s*([+\-*,[\]])\s*/g, '$1')
      .replace(/\b(ds|ss):/g, '')
      .replace(/\b(push|pop)fq\b/, '$1f')
      .replace(/\*1\b/g, '')
      .replace(/rip\+(0xffffffff[0-9a-f]{8})/, (_, wide) => `rip-0x${(-BigInt.asIntN(64, BigInt(wide))).toString(16)}`)
      .replace(/(?<![\w.])(0x[0-9a-f]+|\d+)\b/g, (number) => BigInt(number).toString(16))
      .replace(/\+0\]/, ']')
      // The operands of these are always the same.
      .replace(/^rep movsq? .*qword.*$/, 'rep movsq')
      .replace(/^xlatb?\b.*$/, 'xlat')
      .replace(/,f{16}$/, ',-1')
      // Padding, with prefixes that mean nothing there.
      .replace(/^(?:(?:data16|cs) )*nop .*$/, 'nop')
  );
}

function objdumpWords(machine: Machine, line: Line): string {
  // Without symbols objdump marks targets as hex.
  if (machine === 'riscv64') return riscvWords(line).replace(/^(jal|b\w+) (.*)0x/, '$1 $2');
  const jumps = /^(?:j\w+|call)$/.test(line.mnemonic) && /^[0-9a-f]+$/.test(line.operands);
  return x86Words(`${line.mnemonic} ${jumps ? '0x' : ''}${line.operands}`.trim());
}

/** Lines of code as objdump reads their bytes: one run of it for all of what lies near. Between them is padding. */
function asObjdump(machine: Machine, lines: readonly CodeLine[]): [bigint, string][] {
  const words = new Map<bigint, string>();
  const sorted = lines.toSorted((a, b) => Number(a.address - b.address));
  const ends = sorted.map(({ address, bytes }) => address + BigInt(bytes.length));
  for (let from = 0, to = 1; from < sorted.length; from = to++) {
    while (to < sorted.length && (sorted[to]?.address ?? 0n) - (ends[to - 1] ?? 0n) < 0x1_0000n) to++;
    const start = sorted[from]?.address ?? 0n;
    const image = Buffer.alloc(
      Number((ends[to - 1] ?? 0n) - start),
      machine === 'riscv64' ? '\x01\x00' : '\x90',
      'latin1',
    );
    for (const { address, bytes } of sorted.slice(from, to)) image.set(bytes, Number(address - start));
    for (const line of disassembleBytes(machine, image, start)) words.set(line.address, objdumpWords(machine, line));
  }
  return lines.map(({ address }) => [address, words.get(address) ?? 'no instruction']);
}

const guests = [
  ['riscv64', 'rv-o2', undefined],
  ['riscv64', 'rv-o0', 0x8070_0000n],
  ['x86_64', 'x86-o2', undefined],
  ['x86_64', 'x86-o0', undefined],
] as const;

for (const [machine, guest, at] of usually(guests, ([, name]) => name.endsWith('-o2'))) {
  t.test(`${guest}: displaced instructions and trampolines as objdump reads them`, async (t) => {
    const elf = elfPath(guest);
    const { probes, scratch } = await layouts(elf, at);
    const words = (text: string): string => (machine === 'riscv64' ? text : x86Words(text));
    const read = (lines: readonly CodeLine[]) => lines.map(({ address, text }) => [address, words(text)]);
    const inElf = new Map(disassemble(machine, elf).map((line) => [line.address, objdumpWords(machine, line)]));
    const laid = probes.filter(({ patch }) => patch !== undefined);
    t.ok(laid.length > 3, `${laid.length} of ${probes.length} have trampolines`);
    t.ok(scratch.madeUp);
    const displaced = laid.flatMap((probe) => probe.displaced);
    t.strictSame(
      read(displaced),
      displaced.map(({ address }) => [address, inElf.get(address)]),
    );
    // Of a place inside a function the patch may begin at an instruction before.
    const isWhole = ({ address, patch, displaced }: (typeof laid)[number]) => {
      const bytes = displaced.reduce((sum, line) => sum + line.bytes.length, 0);
      const ahead = Number(BigInt(address) - BigInt(displaced[0]?.address ?? address));
      return ahead >= 0 && ahead <= bytes && bytes >= (patch?.length ?? 0);
    };
    t.strictSame(
      laid.filter((probe) => !isWhole(probe)),
      [],
      'whole instructions under the patch',
    );
    const code = laid.flatMap(({ parts }) => parts);
    const lines = code.flatMap((part) => part.lines);
    t.strictSame(read(lines), asObjdump(machine, lines));
    for (const part of ['patch', 'entry', 'exit']) t.ok(code.some((each) => each.part === part));
    t.strictSame(
      probes.filter(({ why, patch }) => patch === undefined && why === undefined),
      [],
      'each has a trampoline or says why not',
    );
  });
}

t.test('the command, from the ELF alone', async (t) => {
  const words = ['doctor', '--trampolines', '-p', 'fn:labkern::exec::poll_task'];
  const found = await rsptrace(...words, '--json', elfPath('rv-o2')).json<ReturnType<typeof trampolinesJson>>();
  t.match(found, { version: 1, scratch: { made_up: true }, probes: [{ name: 'labkern::exec::poll_task', why: null }] });
  const text = await rsptrace(...words, '--scratch', '0x87000000,1M', elfPath('rv-o2')).ended;
  t.match(text.stdout, /^memory: made up: without --remote/);
  t.match(text.stdout, /trampoline of the entry, 0x870/);
  const without = await rsptrace('doctor', '--trampolines').ended;
  t.equal(without.status, 2);
  t.match(without.stderr, /no ELF is given \[USAGE\]/);
});

t.test('a program that was linked statically has the code of a process, which knows its threads by fs', async (t) => {
  const source =
    '__attribute__((noinline)) int work(int a) { volatile int b = a; return b * 3; } int main(int a, char **b) { return work(a); }';
  const program = compileC(t, source, ['-static']);
  const { stdout } = await rsptrace('doctor', '--trampolines', '-p', 'fn:work', program).ended;
  t.match(stdout, /\bfs:\[0\]/);
});

t.test(
  '--code: the function as objdump reads it, what is replaced of it, and each question with its answer',
  async (t) => {
    const elf = elfPath('rv-o2');
    const { status, stdout } = await rsptrace('doctor', '--code', 'labkern::exec::poll_task', '--json', elf).ended;
    t.equal(status, 0);
    type Code = { address: string; bytes: string; replaced: boolean };
    const { probes } = JSON.parse(stdout) as {
      probes: { code: Code[]; displaced: { address: string }[]; proof: string; questions: { proven: boolean }[] }[];
    };
    const [{ code = [], displaced = [], proof = '', questions = [] } = {}] = probes;
    const inElf = new Map(disassemble('riscv64', elf).map((line) => [line.address, line]));
    t.ok(code.length > 50, `${code.length} instructions`);
    for (const { address } of code) t.ok(inElf.has(BigInt(address)), `objdump has an instruction at ${address}`);
    const replaced = code.filter((line) => line.replaced).map(({ address }) => address);
    t.same(
      replaced,
      displaced.map(({ address }) => address),
    );
    t.match(proof, /^its start is patched and its return hooked: /);
    t.equal(questions.length, 8);
    t.ok(questions.every(({ proven }) => proven));
    const text = await rsptrace('doctor', '--code', 'labkern::exec::poll_task', elf).ended;
    t.match(text.stdout, / {2}proof of a patch at its start and a hook on its return\n {4}reads /);
  },
);

t.test('--code: an objection says what it forbids', async (t) => {
  const program = await prepare(elfPath('rv-o2'), [parseProbe('fn:*')]);
  const plan = enginePlan(program);
  const scratch = madeUpScratch(program.elf, planEngines(plan), 'nothing runs');
  const { probes } = examineTrampolines({ elf: program.elf, arch: program.arch, plan }, scratch, true);
  const refused = probes.flatMap(({ why, whole }) =>
    why === undefined || whole === undefined ? [] : [{ why, whole }],
  );
  t.ok(refused.length > 0, `${refused.length} of ${probes.length} have no patch`);
  const objected = refused.filter(({ why, whole }) =>
    whole.answers.some(({ isProven, text }) => !isProven && text === why),
  );
  t.ok(objected.length > 0, 'the reason is the objection of a question');
});
