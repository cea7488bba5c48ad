// First instructions of whole kernels moved elsewhere, as objdump reads both; and what is refused, with the reason.
import t from 'tap';
import { aarch64 } from '../../src/arch/aarch64/index.js';
import { probeCode } from '../../src/arch/aarch64/trampoline.js';
import type { Displaced } from '../../src/arch/inject/displaced.js';
import { type Addr, addr } from '../../src/base/addr.js';
import { usually } from '../support/long.js';
import { assemble } from './aarch64-machine.js';
import { disassembleBytes, type Line } from './objdump.js';
import { functionsOf, relocationTests, type TestFunction } from './relocation-tests.js';

await aarch64.prepare();

/** With a symbol behind it a target has no 0x. */
function withTarget(line: Line): Line {
  const isTarget = /^(b|bl|b\..*|cbn?z|tbn?z|adrp?)$/.test(line.mnemonic);
  return isTarget ? { ...line, operands: line.operands.replace(/([0-9a-f]+)$/, '0x$1').replace('0x0x', '0x') } : line;
}

const opposite: Readonly<Record<string, string>> = {
  ...{ cbz: 'cbnz', cbnz: 'cbz', tbz: 'tbnz', tbnz: 'tbz', 'b.eq': 'b.ne', 'b.ne': 'b.eq', 'b.lt': 'b.ge' },
  ...{ 'b.ge': 'b.lt', 'b.gt': 'b.le', 'b.le': 'b.gt', 'b.hi': 'b.ls', 'b.ls': 'b.hi', 'b.cs': 'b.cc', 'b.cc': 'b.cs' },
  ...{ 'b.mi': 'b.pl', 'b.pl': 'b.mi', 'b.vs': 'b.vc', 'b.vc': 'b.vs' },
};

const lastOf = ({ operands }: Line): bigint => BigInt(operands.split(', ').at(-1) ?? -1);
const textOf = ({ mnemonic, operands }: Line): string => `${mnemonic} ${operands}`;

/** What relocated code must be, line for line of the original, as text; and what it is. */
function compared({ start, length, kind }: Displaced, original: readonly Line[], moved: readonly Line[]) {
  const lines = [...moved];
  const next = (): Line => lines.shift() ?? { address: 0n, bytes: new Uint8Array(), mnemonic: 'nothing', operands: '' };
  /** What `adrp rd; add rd, rd` makes. */
  const address = (): string => {
    const [page, low] = [next(), next()];
    const rd = page.operands.split(', ')[0];
    const [, add = 'NaN'] = new RegExp(`^${rd}, ${rd}, #(0x[0-9a-f]+)$`).exec(low.operands) ?? [];
    if (page.mnemonic !== 'adrp' || low.mnemonic !== 'add') return `${textOf(page)}; ${textOf(low)}`;
    return `${rd} = 0x${(lastOf(page) + BigInt(add)).toString(16)}`;
  };
  const jump = (): string => {
    if (kind === 'near') return textOf(next());
    const to = address().replace('x16 = ', 'b ');
    const ret = textOf(next());
    return ret === 'ret x16' ? to : `${to}; ${ret}`;
  };
  const [got, wanted]: [string[], string[]] = [[], []];
  for (const line of original.filter((one) => one.address >= start && one.address < start + BigInt(length))) {
    const { mnemonic, operands } = line;
    const behind = `x30 = 0x${(line.address + 4n).toString(16)}`;
    if (mnemonic in opposite) {
      const over = next();
      const fields = (one: Line): string => one.operands.split(', ').slice(0, -1).join();
      got.push(`${over.mnemonic} ${fields(over)} ${lastOf(over) - over.address}`, jump());
      wanted.push(
        `${opposite[mnemonic]} ${fields(line)} ${kind === 'near' ? 8 : 16}`,
        `b ${operands.split(', ').at(-1)}`,
      );
    } else if (mnemonic === 'b') {
      got.push(jump());
      wanted.push(textOf(line));
    } else if (mnemonic === 'bl') {
      got.push(address(), jump());
      wanted.push(behind, `b ${operands}`);
    } else if (mnemonic === 'blr') {
      got.push(address(), textOf(next()));
      wanted.push(behind, `ret ${operands}`);
    } else if (mnemonic === 'adr') {
      got.push(address());
      wanted.push(operands.replace(', ', ' = '));
    } else {
      // With adrp and all others.
      got.push(textOf(next()));
      wanted.push(textOf(line));
    }
  }
  got.push(jump(), ...lines.map(textOf));
  wanted.push(`b 0x${(start + BigInt(length)).toString(16)}`);
  return { got, wanted };
}

for (const guest of usually(['arm-o0', 'arm-o2'], (one) => one === 'arm-o2')) {
  t.test(`the first instructions of the functions of ${guest} are moved`, async (t) => {
    const functions = functionsOf('aarch64', guest, withTarget);
    t.ok(functions.length > 100);
    for (const { kind, reach } of probeCode.patches) {
      const reasons: string[] = [];
      const moved: (readonly [TestFunction, Displaced, Uint8Array, Addr])[] = [];
      let at = addr(0x4008_0000n + BigInt(reach) / 2n);
      for (const one of functions) {
        const displaced = probeCode.displace(one.code, one.start, kind);
        if ('refused' in displaced) reasons.push(`${one.name}: ${displaced.refused}`);
        else {
          const code = displaced.relocate(at);
          moved.push([one, displaced, code, at]);
          at = addr(at + BigInt(code.length));
        }
      }
      const least = kind === 'near' ? 0.97 : 0.85;
      t.ok(moved.length > least * functions.length, `${moved.length} of ${functions.length}, ${kind}`, { reasons });
      const first = moved[0]?.[3] ?? at;
      const all = disassembleBytes('aarch64', Uint8Array.from(moved.flatMap(([, , code]) => [...code])), first);
      const problems: unknown[] = [];
      for (const [one, displaced, code, place] of moved) {
        const from = Number(place - first) / 4;
        const { got, wanted } = compared(displaced, one.lines, all.slice(from, from + code.length / 4));
        if (got.join('\n') !== wanted.join('\n')) problems.push({ name: one.name, got, wanted });
      }
      t.same(problems.slice(0, 5), []);
    }
  });
}

relocationTests({
  code: probeCode,
  assemble,
  start: addr(0x4010_0000n),
  stay: [
    ['far', 'nop\nret', /shorter than the jump \(8 of 12 bytes\)/],
    ['near', 'bti c', /shorter than the jump \(0 of 4 bytes\)/],
    ['far', 'nop\n1: nop\nnop\nnop\nb 1b', /branch 16 bytes into it leads to byte 4/],
    ['far', 'bti c\nnop\nnop\nbti j\nnop\nret', /is where an indirect jump may arrive/],
    ['near', 'ldxr x0, [x1]\nret', /ldxr .* must stay close to the store/],
    ['near', 'stlxr w2, x0, [x1]\nret', /stlxr .* must stay close to the load/],
    ['near', 'brk #1\nret', /brk .* means something to a debugger/],
    ['near', 'mov sp, x0\nret', /changes stacks/],
    ['near', 'nop\nadrp x0, _start\nmov sp, x0\nret', /sets the stack pointer up/],
    ['near', 'nop\nldr x0, =0x40000000\nmov sp, x0\nret', /sets the stack pointer up/],
    ['near', '.4byte 0x74000020\nret', /is not known/],
    ['near', '.4byte 0xdac1a3fe\nret', /is not known/],
    ['near', '.arch armv8.5-a+memtag\naddg sp, sp, #16, #1\nret', /changes stacks/],
    ['near', 'blr x30\nret', /needs a register/],
    ['near', 'blraa x1, x2\nret', /authenticates/],
    ['far', 'bl _start+64\nnop\nnop\nret', /returns into/],
    ['far', 'mov x16, #5\nadd x0, x0, x16\nnop\nret', /set x16/],
    ['far', 'nop\nnop\nnop\ncbz x0, 1f\nmov x16, #1\n1: mov x0, x16\nret', /uses x16 as it was/],
    ['far', 'nop\nnop\nnop\neret', /returns from a trap/],
  ],
  move: [
    ['near', 'mov x16, #5\nadd x0, x0, x16\nret'],
    ['far', 'nop\nnop\nnop\nbl _start+64\nmov x0, x16\nret'],
    ['near', 'stp x29, x30, [sp, #-16]!\nmov x29, sp\nsub sp, sp, x1\nmov sp, x29\nldp x29, x30, [sp], #16\nret'],
    ['near', 'ldr q0, 1f\nret\n.balign 16\n1: .quad 0, 0'],
    ['near', 'nop\neret'],
    ['near', '.arch armv8.5-a+memtag\naddg x1, sp, #16, #1\nret'],
    ['far', '.arch armv8.5-a+memtag\nirg x0, sp\nstg x0, [x0]\nstgp x1, x2, [x0]\nret'],
  ],
  unhooked: [
    ['sub x0, x0, #1\ncbnz x0, _start\nret', /loops to its first instruction/],
    ['bti c\n1: sub x0, x0, #1\ncbnz x0, 1b\nret', /loops to its first instruction/],
    ['nop\neret', /returns from a trap/],
    ['nop\nret x9', /return address elsewhere/],
  ],
  hooked: 'mov x9, x30\nret x9',
  patched: [
    ['nop\nnop\nnop\nret', 0n],
    ['bti jc\nnop\nnop\nnop\nret', 4n],
    ['paciasp\nnop\nnop\nnop\nret', 4n],
  ],
  backwards: 8n,
  beyond: 0x2000n,
  noPatches: ['bl _start'],
  // `adrp x0`, 4 GiB below it
  examples: [[Uint8Array.of(0, 0, 128, 240), 'near']],
});
