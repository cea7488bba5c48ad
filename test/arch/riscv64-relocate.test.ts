import t from 'tap';
import type { Displaced, PatchKind } from '../../src/arch/inject/displaced.js';
import { codeFlow } from '../../src/arch/riscv64/flow.js';
import { probeCode } from '../../src/arch/riscv64/trampoline.js';
import { addr } from '../../src/base/addr.js';
import { usually } from '../support/long.js';
import { disassembleBytes, type Line } from './objdump.js';
import { functionsOf, relocationTests } from './relocation-tests.js';
import { assemble } from './riscv64-machine.js';

const opposite: Readonly<Record<string, string>> = {
  beq: 'bne',
  bne: 'beq',
  blt: 'bge',
  bge: 'blt',
  bltu: 'bgeu',
  bgeu: 'bltu',
};

const isJump = (mnemonic: string): boolean => /^(c\.)?(j|jal|b[a-z]+)$/.test(mnemonic) && mnemonic !== 'c.break';
const targetOf = ({ operands }: Line): bigint => BigInt(`0x${(operands.split(',').at(-1) ?? '').replace('0x', '')}`);

/** Reads relocated code line by line, as objdump prints it at address 0. */
class Reader {
  readonly #lines: readonly Line[];
  readonly #base: bigint;
  #next = 0;

  constructor(lines: readonly Line[], base: bigint) {
    this.#lines = lines;
    this.#base = base;
  }

  line(): Line {
    return this.#lines[this.#next++] ?? { address: 0n, bytes: new Uint8Array(), mnemonic: 'nothing', operands: '' };
  }

  get done(): boolean {
    return this.#next === this.#lines.length;
  }

  /** What `auipc rd; addi rd,rd` or `auipc rd; jalr zero,(rd)` makes, as text. */
  pair(second: string): string {
    const high = this.line();
    const [rd = '', upper = ''] = high.operands.split(',');
    const low = this.line();
    const match = /^(\S+),(?:(\w+),(-?\d+)|(-?\d+)\((\w+)\))$/.exec(low.operands);
    if (high.mnemonic !== 'auipc' || low.mnemonic !== second || (match?.[2] ?? match?.[5]) !== rd) return 'no pair';
    const value =
      high.address + this.#base + BigInt.asIntN(32, BigInt(upper) << 12n) + BigInt(match?.[3] ?? match?.[4] ?? 0);
    return `${match?.[1]}=${BigInt.asUintN(64, value).toString(16)}`;
  }

  jump(kind: PatchKind): string {
    if (kind === 'far') return this.pair('jalr').replace('zero=', 'to ');
    const line = this.line();
    if (line.mnemonic !== 'jal' || !line.operands.startsWith('zero,')) return line.mnemonic;
    return `to ${BigInt.asUintN(64, targetOf(line) + this.#base).toString(16)}`;
  }
}

/** What relocated code must be, line for line of the original. Undefined where it is. */
function wrong(
  { start, length, kind }: Displaced,
  original: readonly Line[],
  moved: readonly Line[],
  base: bigint,
): string | undefined {
  const reader = new Reader(moved, base);
  const expect = (got: string, wanted: string): string | undefined =>
    got === wanted ? undefined : `${got}, not ${wanted}`;
  for (const line of original) {
    if (line.address >= start + BigInt(length)) break;
    const { mnemonic, operands } = line;
    const [first = '', second = ''] = operands.split(',');
    const next = (line.address + BigInt(line.bytes.length)).toString(16);
    const problems: (string | undefined)[] = [];
    const short = mnemonic.replace('c.', '').replace(/z$/, '');
    if (mnemonic === 'auipc') {
      const value = BigInt.asUintN(64, line.address + BigInt.asIntN(32, BigInt(second) << 12n));
      problems.push(expect(reader.pair('addi'), `${first}=${value.toString(16)}`));
    } else if (short in opposite) {
      const branch = reader.line();
      const operandsNow = branch.operands.split(',').slice(0, 2).join();
      problems.push(
        expect(
          `${branch.mnemonic} ${operandsNow}`,
          `${opposite[short]} ${first},${mnemonic.endsWith('z') ? 'zero' : second}`,
        ),
      );
      const over = branch.address + (kind === 'near' ? 8n : 12n);
      problems.push(expect(targetOf(branch).toString(16), over.toString(16)));
      problems.push(expect(reader.jump(kind), `to ${targetOf(line).toString(16)}`));
    } else if (isJump(mnemonic)) {
      if (mnemonic === 'jal' && first !== 'zero') problems.push(expect(reader.pair('addi'), `${first}=${next}`));
      problems.push(expect(reader.jump(kind), `to ${targetOf(line).toString(16)}`));
    } else if (mnemonic === 'c.jalr') {
      problems.push(expect(reader.pair('addi'), `ra=${next}`));
      const jump = reader.line();
      problems.push(expect(`${jump.mnemonic} ${jump.operands}`, `jalr zero,0(${operands})`));
    } else if (mnemonic === 'jalr' && first !== 'zero') {
      const [, offset = '', base = ''] = /(-?\d+)\((\w+)\)/.exec(operands) ?? [];
      if (base === first) {
        const copy = reader.line();
        problems.push(expect(`${copy.mnemonic} ${copy.operands}`, `addi t0,${base},${offset}`));
      }
      problems.push(expect(reader.pair('addi'), `${first}=${next}`));
      const jump = reader.line();
      problems.push(
        expect(
          `${jump.mnemonic} ${jump.operands}`,
          base === first ? 'jalr zero,0(t0)' : `jalr zero,${offset}(${base})`,
        ),
      );
    } else {
      const copy = reader.line();
      problems.push(expect(`${copy.mnemonic} ${copy.operands}`, `${mnemonic} ${operands}`));
    }
    const problem = problems.find((found) => found !== undefined);
    if (problem !== undefined) return `${mnemonic} ${operands}: ${problem}`;
  }
  const back = expect(reader.jump(kind), `to ${(start + BigInt(length)).toString(16)}`);
  return back ?? (reader.done ? undefined : 'more code behind it');
}

const reach = (kind: PatchKind): number => probeCode.patches.find((patch) => patch.kind === kind)?.reach ?? 0;

const guests = [
  ['rv-o0', 577, 573],
  ['rv-o2', 119, 117],
  ['rvm-o2', 119, 117],
] as const;
for (const [guest, leastNear, leastFar] of usually(guests, ([name]) => name === 'rv-o2')) {
  t.test(
    `the functions of ${guest} can be patched, and their first instructions moved, as objdump reads them`,
    async (t) => {
      const functions = functionsOf('riscv64', guest);
      for (const [kind, least] of [
        ['near', leastNear],
        ['far', leastFar],
      ] as const) {
        const reasons: string[] = [];
        const displaced: { readonly displaced: Displaced; readonly lines: readonly Line[]; readonly name: string }[] =
          [];
        for (const { name, start, lines, code } of functions) {
          const found = probeCode.displace(code, start, kind);
          if ('refused' in found) reasons.push(`${name}: ${found.refused}`);
          else displaced.push({ displaced: found, lines, name });
        }
        const message = `${displaced.length} of ${functions.length} functions for a ${kind} patch`;
        t.ok(displaced.length >= least, message, { reasons });

        // All in one run of objdump, one behind the other as far from the functions as the jumps reach.
        const base = addr((functions[0]?.start ?? 0n) + BigInt(reach(kind)) / 2n);
        const codes: Uint8Array[] = [];
        let size = 0;
        for (const one of displaced) {
          const code = one.displaced.relocate(addr(base + BigInt(size)));
          codes.push(code);
          size += code.length;
        }
        const all = disassembleBytes('riscv64', Uint8Array.from(codes.flatMap((code) => [...code])));
        const problems: string[] = [];
        let index = 0;
        let end = 0;
        for (const [number, one] of displaced.entries()) {
          end += codes[number]?.length ?? 0;
          const from = index;
          while ((all[index]?.address ?? BigInt(size)) < BigInt(end)) index++;
          const problem = wrong(one.displaced, one.lines, all.slice(from, index), base);
          if (problem !== undefined) problems.push(`${one.name}: ${problem}`);
          // No branch of the function leads behind the first byte that is overwritten.
          const last = one.displaced.start + BigInt(one.displaced.patchLength);
          const inside = one.lines.find(
            (line) => isJump(line.mnemonic) && targetOf(line) > one.displaced.start && targetOf(line) < last,
          );
          if (inside !== undefined) problems.push(`${one.name}: entered from ${inside.address.toString(16)}`);
        }
        t.same(problems, []);
      }
    },
  );
}

const START = addr(0x8010_0000);

relocationTests({
  code: probeCode,
  assemble,
  start: START,
  stay: [
    ['near', 'ret', /shorter than the jump \(2 of 4 bytes\)/],
    ['far', 'mv a0,a1\nret', /shorter than the jump \(4 of 8 bytes\)/],
    ['near', 'mv a0,a1\n1: mv a1,a2\nbnez a2,1b\nret', /branch 4 bytes into it leads to byte 2/],
    ['far', 'mv a0,a1\nmv a1,a0\n1: mv a1,a2\nmv a2,a3\nmv a3,a4\nj 1b', /branch 10 bytes into it leads to byte 4/],
    ['far', 'nop\nnop\n1: nop\nnop\n2: auipc a0,0\njr -4(a0)\n', /branch 12 bytes into it leads to byte 4/],
    ['near', '1: lr.d a0,(a1)\nsc.d a2,a0,(a1)\nbnez a2,1b\nret', /lr\.d .* must stay close/],
    ['near', 'sc.d a2,a0,(a1)\nret', /sc\.d .* must stay close/],
    ['near', 'nop\nebreak\nret', /ebreak means something/],
    ['near', 'mv sp,a0\nret', /changes stacks/],
    ['near', 'ld sp,8(a0)\nret', /changes stacks/],
    ['near', 'nop\nnop\ncsrrw sp,mscratch,sp\nret', /sets the stack pointer up/],
    ['near', 'csrw mie,zero\nla sp,_start\nret', /sets the stack pointer up/],
    ['near', '.4byte 0x0000000b\nret', /is not known/],
    ['near', '.2byte 0\n.2byte 0\nret', /is not known/],
    ['near', 'nop\njalr ra,0(ra)\nret', /needs a register/],
    ['near', 'auipc zero,1\nret', /indirect jump may arrive/],
    ['near', 'jalr a0\nnop\nret', /returns into/],
    ['far', 'jal ra,_start+64\nnop\nnop\nret', /returns into/],
    ['far', 'li t0,5\nadd a0,a0,t0\nadd a0,a0,t0\nret', /set t0/],
    ['far', '.option norvc\nnop\nnop\nbeqz a0,1f\nli t0,1\n1: mv a0,t0\nret', /uses t0 as it was/],
    ['far', '.option norvc\nnop\nnop\nfcvt.d.l fa0,t0\nret', /uses t0 as it was/],
    ['far', '.option norvc\nnop\nnop\nsret', /returns from a trap/],
  ],
  move: [
    ['near', '.option norvc\nli t0,5\nadd a0,a0,t0\nret'],
    ['far', '.option norvc\nnop\nnop\nbeqz a0,1f\nli t0,1\nmv a0,t0\nret\n1: li t0,2\nmv a0,t0\nret'],
    ['far', '.option norvc\nnop\nnop\ncall _start+64\nmv a0,t0\nret'],
    ['near', '1: addi a0,a0,-1\nbnez a0,1b\nret'],
    ['near', 'fadd.d fa0,fa0,fa1\nret'],
    ['near', 'fld fs0,0(sp)\nret'],
    ['near', 'nop\nsret'],
  ],
  unhooked: [
    ['addi a0,a0,-1\nbnez a0,_start\nret', /loops to its first instruction/],
    ['nop\nnop\nmret', /returns from a trap/],
    ['addi sp,sp,-32\nsd ra,8(sp)\njr t0', /return address elsewhere/],
  ],
  hooked: 'addi sp,sp,-32\nsd ra,8(sp)\ncall _start\nld t0,0(a0)\njr t0',
  patched: [['nop\nnop\nnop\nnop\nret', 0n]],
  backwards: 1n,
  beyond: 0x1000n,
  noPatches: ['nop\nnop', 'jal ra,_start', 'auipc t0,1\njalr t1,0(t0)'],
});

t.test('a return from a trap gives every temporary back', async (t) => {
  const steps = codeFlow.steps(assemble('addi sp,sp,16\nmret', START), START);
  t.same(
    steps.map(({ needs }) => needs),
    [0, 127],
  );
});

t.test('moved code is as long wherever it stands, and leads where it did, or says that it cannot', async (t) => {
  const code = assemble('beqz a0,1f\nla a1,_start\nnop\n1: ret', START);
  const displaced = probeCode.displace(code, START, 'near') as Displaced;
  const length = displaced.relocate(START).length;
  for (const offset of [-0xf_0000, 0x10, 0xf_0000])
    t.equal(displaced.relocate(addr(START + BigInt(offset))).length, length);
  t.throws(() => displaced.relocate(addr(START + 0x20_0000n)), RangeError);
  t.same(displaced.text, ['beq a0,zero,8010000c', 'auipc a1,0x0']);

  // An address in the highest 2 GiB is a constant where the pc is too far.
  const high = addr(0xffff_ffff_8010_0000n);
  const far = probeCode.displace(assemble('auipc a1,0x12345\nnop\nnop\nret', START), high, 'far') as Displaced;
  t.throws(() => far.relocate(addr(0x8000_0000)), RangeError, 'the jump back is out of reach');
  const [lui, addi] = disassembleBytes('riscv64', far.relocate(addr(high - 0x7fff_0000n)));
  t.equal(`${lui?.mnemonic} ${lui?.operands}`, 'lui a1,0x92445');
  t.equal(`${addi?.mnemonic} ${addi?.operands}`, 'addi a1,a1,0');
});
