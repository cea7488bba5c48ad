import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import t from 'tap';
import { type Displaced, x86_64 } from '../../src/arch/index.js';
import { displace, displaceInside, loopsToStart } from '../../src/arch/x86_64/relocate.js';
import { probeCode } from '../../src/arch/x86_64/trampoline.js';
import { addOffset, addr } from '../../src/base/addr.js';
import { elfPath } from '../qemu/guests/guests.js';
import { long, usually } from '../support/long.js';
import { disassemble, disassembleBytes, type Line } from './objdump.js';

await x86_64.prepare();

interface Function {
  readonly name: string;
  readonly start: bigint;
  readonly lines: readonly Line[];
}

/** Functions with a size, and their lines of objdump. */
function functionsOf(file: string): Function[] {
  const lines = disassemble('x86_64', file);
  const index = new Map(lines.map(({ address }, at) => [address, at]));
  const table = execFileSync('readelf', ['-W', '--syms', '--dyn-syms', file], {
    encoding: 'latin1',
    maxBuffer: 1 << 28,
  });
  const found = new Map<bigint, Function>();
  for (const text of table.split('\n')) {
    const match = /^ *\d+: ([0-9a-f]{16}) +(\d+) (?:FUNC|IFUNC) .* (\S+)$/.exec(text);
    const start = BigInt(`0x${match?.[1] ?? '0'}`);
    const end = start + BigInt(match?.[2] ?? 0);
    const from = index.get(start);
    if (match === null || end === start || from === undefined || found.has(start)) continue;
    const until = index.get(end) ?? lines.findIndex(({ address }) => address >= end);
    found.set(start, { name: match[3] ?? '', start, lines: lines.slice(from, until < 0 ? lines.length : until) });
  }
  return [...found.values()];
}

const isDirect = ({ operands }: Line): boolean => /^(0x)?[0-9a-f]+$/.test(operands);
const isFlow = ({ mnemonic }: Line): boolean => /^(\w+ )*(j\w+(,p[nt])?|call|loop\w*|xbegin)$/.test(mnemonic);
const targetOf = ({ operands }: Line): bigint => BigInt(`0x${operands.replace(/^0x/, '')}`);
const nextOf = ({ address, bytes }: Line): bigint => address + BigInt(bytes.length);
const bytesOf = (lines: readonly Line[]): Uint8Array => Uint8Array.from(lines.flatMap(({ bytes }) => [...bytes]));
const plainName = (mnemonic: string): string =>
  mnemonic.replace(/^(bnd|notrack|cs|ds|rex\S*|addr32) /, '').replace(/,p[nt]$/, '');

/** Where a patch may begin: a landing pad stays. */
const patchedAt = ({ start, lines: [first] }: Function): bigint => start + (first?.mnemonic === 'endbr64' ? 4n : 0n);

/** Why the function cannot be patched, as objdump sees it; undefined when it can. */
function obstacle(fn: Function): string | undefined {
  const { start, lines } = fn;
  const from = patchedAt(fn);
  const taken = lines.filter(({ address }) => address >= from && address < from + 5n);
  const end = taken.length > 0 ? nextOf(taken.at(-1) as Line) : from;
  if (lines.some(({ mnemonic }) => mnemonic.includes('(bad)'))) return 'unknown';
  if (end < from + 5n) return 'short';
  const enters = (line: Line): boolean => {
    if (!isFlow(line) || !isDirect(line)) return false;
    const target = targetOf(line);
    const isEntry = plainName(line.mnemonic) === 'call' && (target === start || target === from);
    return target < end && target >= start && !isEntry;
  };
  if (lines.some((line) => enters(line) && targetOf(line) >= start)) return 'entered';
  const ends = taken.findIndex(({ mnemonic }) => /^(j|.* j)mp$|ret/.test(mnemonic));
  const reached = ends < 0 ? taken : taken.slice(0, ends + 1);
  if (taken.slice(reached.length).some(({ mnemonic, operands }) => !/nop|int3/.test(mnemonic) && operands !== 'ax,ax'))
    return 'ends';
  // It would return to where no unwinder knows the code.
  const stays = (line: Line): boolean =>
    plainName(line.mnemonic) === 'call' &&
    !isDirect(line) &&
    (line !== taken.at(-1) || /\[rsp|rsp$/.test(line.operands));
  if (reached.some(stays) || (reached === taken && taken.at(-1)?.mnemonic === 'sti')) return 'immovable';
  return reached.some(({ mnemonic }) => /syscall|int|ud[012]|loop|j[er]?cxz|xbegin|sysenter/.test(mnemonic))
    ? 'immovable'
    : undefined;
}

const reasons: [string, RegExp][] = [
  ['unknown', /no known instruction/],
  ['short', /shorter than the jump/],
  ['entered', /goes into the first/],
  ['ends', /the function ends/],
  ['immovable', /cannot be carried out/],
];

/** Text that means the same wherever the line stands. */
function meaning(line: Line, base: bigint): string {
  const wrap = (value: bigint): string => BigInt.asUintN(64, value + base).toString(16);
  const name = plainName(line.mnemonic);
  if (isFlow(line) && isDirect(line)) return `${name} ${wrap(targetOf(line))}`;
  const rip = /\[rip\+(0x[0-9a-f]+)\]/.exec(line.operands);
  if (rip === null) return `${name} ${line.operands}`;
  return `${name} ${line.operands.replace(rip[0], `[${wrap(nextOf(line) + BigInt(rip[1] ?? 0))}]`)}`;
}

/** What must stand where the displaced instructions are carried out; `literal` is where a call's return address lies. */
function expectedCode(taken: readonly Line[], end: bigint): string[] {
  const texts: string[] = [];
  for (const line of taken) {
    const text = meaning(line, 0n);
    if (text.startsWith('call ')) texts.push('push return address', text.replace('call', 'jmp'));
    else texts.push(text);
    if (/^(jmp|ret)/.test(text)) return texts;
  }
  return [...texts, `jmp ${end.toString(16)}`];
}

const BASE = 0x2000_0000n;
const ROOM = 128;

/** Differences between what the moved code of each function does and what its own instructions did. */
function differences(moved: readonly { fn: Function; displaced: Displaced }[]): object[] {
  const image = new Uint8Array(moved.length * ROOM).fill(0x90);
  for (const [index, { displaced }] of moved.entries()) {
    image.set(displaced.relocate(addr(BASE + BigInt(index * ROOM))), index * ROOM);
  }
  const lines = new Map(disassembleBytes('x86_64', image).map((line) => [line.address, line]));
  return moved.flatMap(({ fn, displaced }, index) => {
    const end = patchedAt(fn) + BigInt(displaced.length);
    const wanted = expectedCode(
      fn.lines.filter(({ address }) => address >= patchedAt(fn) && address < end),
      end,
    );
    let at = BigInt(index * ROOM);
    const actual = wanted.map((want) => {
      const line = lines.get(at);
      if (line === undefined) return 'nothing';
      at = nextOf(line);
      if (want !== 'push return address') return meaning(line, BASE);
      const literal = Number(at + BigInt(/\[rip\+(0x[0-9a-f]+)\]/.exec(line.operands)?.[1] ?? 0));
      const value = literal + 8 <= image.length ? Buffer.from(image).readBigUInt64LE(literal) : 0n;
      return line.mnemonic === 'push' && value === end ? want : `${line.mnemonic} ${line.operands}: ${value}`;
    });
    return JSON.stringify(actual) === JSON.stringify(wanted) ? [] : [{ name: fn.name, actual, wanted }];
  });
}

/** Without `--long`: so many functions of each program, evenly. */
const sampled = 400;

const programs = {
  'x86-o0': { file: elfPath('x86-o0'), patchable: 0.99 },
  'x86-o2': { file: elfPath('x86-o2'), patchable: 0.95 },
  'x86-o2-legacy': { file: elfPath('x86-o2-legacy'), patchable: 0.95 },
  bash: { file: '/bin/bash', patchable: 0.9 },
  libc: { file: '/lib/x86_64-linux-gnu/libc.so.6', patchable: 0.85 },
};

for (const [name, { file, patchable }] of usually(Object.entries(programs), ([name]) => /^(x86-o2|libc)$/.test(name))) {
  t.test(`functions of ${name} do elsewhere what objdump says that they do at home`, async (t) => {
    const all = functionsOf(file);
    const every = long ? 1 : Math.ceil(all.length / sampled);
    const functions = all.filter((_, index) => index % every === 0);
    const moved: { fn: Function; displaced: Displaced }[] = [];
    const counts: Record<string, number> = {};
    const wrong: object[] = [];
    let looping = 0;
    for (const fn of functions) {
      const result = displace(bytesOf(fn.lines), addr(fn.start), 'near');
      const why =
        'refused' in result ? (reasons.find(([, pattern]) => pattern.test(result.refused))?.[0] ?? '?') : undefined;
      counts[why ?? 'patchable'] = (counts[why ?? 'patchable'] ?? 0) + 1;
      const starts = [fn.start, patchedAt(fn)];
      const loops = fn.lines.some(
        (line) => isFlow(line) && isDirect(line) && starts.includes(targetOf(line)) && !/call$/.test(line.mnemonic),
      );
      if (why !== 'unknown' && loopsToStart(bytesOf(fn.lines), addr(fn.start)) !== loops)
        wrong.push({ name: fn.name, loops });
      looping += loops ? 1 : 0;
      if (why !== obstacle(fn)) wrong.push({ name: fn.name, result, objdump: obstacle(fn) });
      if ('refused' in result) continue;
      if (result.start !== patchedAt(fn)) wrong.push({ name: fn.name, start: result.start });
      moved.push({ fn, displaced: result });
    }
    t.comment(`${functions.length} functions, ${looping} loop: ${JSON.stringify(counts)}`);
    t.same(wrong.slice(0, 5), [], 'refused for what objdump shows, and for that only');
    t.same(differences(moved).slice(0, 5), []);
    t.ok(moved.length > patchable * functions.length, `${moved.length} of ${functions.length} can be patched`);
    const lengths = moved.filter(({ displaced, fn }) => {
      const places = [BASE, BigInt.asUintN(64, fn.start - 0x7000_0000n), fn.start + 0x7000_0000n].map(addr);
      return new Set(places.map((at) => displaced.relocate(at).length)).size !== 1;
    });
    t.same(lengths, [], 'as long anywhere');
  });
}

const code = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

t.test('what cannot be patched is refused in words', async (t) => {
  const start = addr(0x1000);
  const cases: [hex: string, why: RegExp][] = [
    ['c3', /^its code is shorter than the jump \(1 of 5 bytes\)$/],
    ['', /\(0 of 5 bytes\)/],
    ['c3 4889f8 90 90', /^the function ends before mov rax, rdi at \+0x1$/],
    ['eb fe 90 90 90', /^jmp 0x1000 at \+0x0 goes into the first 5 bytes$/],
    ['48 ff c0 48 ff c1 75 fb c3', /^jne 0x1003 at \+0x6 goes into the first 6 bytes$/],
    ['48 ff c0 48 ff c1 e8 f8 ff ff ff c3', /^call 0x1003/],
    ['55 e3 02 90 90 90 c3', /^jrcxz 0x1005 at \+0x1 cannot be carried out elsewhere$/],
    ['55 67 e3 02 90 90 c3', /^jecxz/],
    ['55 e2 02 90 90 90 c3', /^loop /],
    ['55 0f 05 90 90 90 c3', /^syscall/],
    ['55 cc 90 90 90 90 c3', /^int3/],
    ['55 cd 80 90 90 90 c3', /^int 0x80/],
    ['55 0f 0b 90 90 90', /^ud2/],
    ['c7 f8 00 00 00 00 c3', /^xbegin/],
    ['31 c0 89 f9 01 c8 e2 fc c3', /^loop 0x1004 at \+0x6 goes into the first 6 bytes$/],
    ['50 ff d7 58 c3', /^call rdi at \+0x1 cannot be carried out elsewhere$/],
    ['50 ff 54 24 08 58 c3', /^call qword ptr \[rsp \+ 8\] at \+0x1 cannot/],
    ['55 48 89 e5 fb f4 5d c3', /^sti at \+0x4 cannot be carried out elsewhere$/],
    ['90 90 90 8e d0 48 89 cc c3', /^mov ss, eax at \+0x3 cannot/],
    ['67 8b 05 10 00 00 00 c3', /eip.* cannot be carried out elsewhere$/],
    // F3 is reserved before a branch.
    ['f3 74 05 90 90 90 90', /^je 0x1008 at \+0x0 cannot be carried out elsewhere$/],
    ['f3 0f 8c 05 00 00 00 c3', /^jl 0x100c at \+0x0 cannot be carried out elsewhere$/],
    ['48 89 f8 06 90 90', /^\.byte 0x6 at \+0x3 is no known instruction$/],
    // f9 could be the distance of a jump to its begin.
    ['48 89 f8 90 90 06 75 f9', /^\.byte 0x6 at \+0x5 is no known instruction$/],
  ];
  for (const [hex, why] of cases) {
    const result = displace(code(hex), start, 'near');
    t.match('refused' in result ? result.refused : result.text, why, hex);
  }
  t.match(
    displace(code('48 89 f8 90 90 06'), start, 'near'),
    { length: 5 },
    'nothing there can be a jump to its begin',
  );
  const enough = code('55 48 89 e5 90 c3');
  t.match(displace(enough, start, 'far'), { refused: /jmp rel32/ });
  t.match(displace(code('55 fb f4 5d c3'), start, 'near'), { text: ['push rbp', 'sti', 'hlt', 'pop rbp', 'ret'] });
  const halting = code('48 89 f8 fb f4 90');
  t.match(displaceInside(halting, start, 4, { kind: 'near', free: undefined }), { refused: /^sti at \+0x3 cannot/ });
  t.match(displaceInside(halting, start, 3, { kind: 'near', free: undefined }), { length: 6 });
  t.match(displaceInside(code('f4 48 89 f8 90'), start, 0, { kind: 'near', free: undefined }), {
    refused: /^hlt .* behind sti$/,
  });
  const ends = probeCode.ends(code('90 90 90 90 90 fb f4 5b 41 5e c3'), start, {
    ...{ kind: 'near', from: 5, inRegisters: () => true },
  });
  t.match(ends, [{ start: addr(0x1005), length: 6 }], 'the jump for an exit replaces sti, too');
  t.ok(loopsToStart(code('48 83 c7 08 90 e2 f9 c3'), start), 'a loop');
  t.match(displace(enough, start, 'near'), { length: 5, patchLength: 5, text: ['push rbp', 'mov rbp, rsp', 'nop'] });
  t.match(
    displace(code('e8 f0 ff ff ff e8 f6 ff ff ff c3'), start, 'near'),
    { length: 5 },
    'a call of itself is a call',
  );
});

t.test('any bytes are refused or moved, and nothing is thrown', async (t) => {
  const starts = fc.constantFrom(
    '',
    '48',
    '67',
    '66',
    'f2',
    '2e',
    'e8',
    'e9',
    'eb',
    '0f84',
    '74',
    'ff15',
    'ff25',
    'ff',
    '488b05',
    'c4e2',
    '62',
  );
  let moved = 0;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(starts, fc.uint8Array({ minLength: 1, maxLength: 7 })), { maxLength: 6 }),
      (pieces) => {
        const bytes = Uint8Array.from(pieces.flatMap(([start, rest]) => [...code(start), ...rest]));
        const result = displace(bytes, addr(0x8000_0000_0000n), 'near');
        if ('refused' in result) return;
        moved++;
        const far = addr(0x8000_0000_0000n + 0x10_0000n);
        let length: number | undefined;
        for (const at of [result.start, far]) {
          try {
            length ??= result.relocate(at).length;
            if (result.relocate(at).length !== length) throw new Error('The length depends on the address');
          } catch (error) {
            if (!(error instanceof RangeError)) throw error;
          }
        }
      },
    ),
    { seed: 6, numRuns: 4000 },
  );
  t.ok(moved > 300, `${moved} are moved`);
});

t.test('a patch is a jump that can be read again, or a RangeError', async (t) => {
  const start = addr(0xffff_ffff_8100_0000n);
  const displaced = displace(code('55 48 89 e5 90 c3'), start, 'near');
  if ('refused' in displaced) throw new Error(displaced.refused);
  const [near] = probeCode.patches;
  const reach = near?.reach ?? 0;
  for (const distance of [0, 0x1000, -0x1000, reach, -reach]) {
    const to = addOffset(start, distance);
    const patch = probeCode.patch(displaced, to);
    const [line] = disassembleBytes('x86_64', patch);
    t.match(line, { mnemonic: 'jmp', bytes: { length: displaced.patchLength } });
    t.equal(BigInt.asUintN(64, BigInt(line?.operands ?? 0) + start), to);
    t.equal(probeCode.patchTarget(patch, start), to);
  }
  for (const distance of [reach + 10, -reach - 1]) {
    t.throws(() => probeCode.patch(displaced, addOffset(start, distance)), RangeError);
    t.throws(() => displaced.relocate(addOffset(start, distance + Math.sign(distance) * 16)), RangeError);
  }
  for (const other of ['', 'e9 00 00 00', '55 48 89 e5 90', 'eb 00 00 00 00']) {
    t.equal(probeCode.patchTarget(code(other), start), undefined);
  }
});
