// Each step of a walk, on a program drawn by hand: functions of 0x100 bytes, and what an unwinder knows of each.
import t from 'tap';
import { architectureOf, type Confidence, type HookFrame } from '../../../src/arch/index.js';
import { type Addr, addr } from '../../../src/base/addr.js';
import { RsptraceError } from '../../../src/base/errors.js';
import type { UnwindRow } from '../../../src/base/unwind-row.js';
import type { CodeImages } from '../../../src/target/unwind/code-image.js';
import type { Found, UnwinderName } from '../../../src/target/unwind/frame.js';
import { RegisterFile } from '../../../src/target/unwind/registers.js';
import { StackWindow } from '../../../src/target/unwind/stack-window.js';
import { Walk, type WalkContext } from '../../../src/target/unwind/walk.js';

const RISCV = 243;
const arch = architectureOf(RISCV);
if (arch?.frames === undefined) throw new Error('no frames');
const file = new RegisterFile(arch, arch.frames);
const { stackPointer: SP, returnAddress: RA } = arch.frames;

interface Drawn {
  readonly found?: Found | undefined;
  readonly name?: UnwinderName;
  readonly isEntry?: boolean;
  readonly isJoined?: boolean;
}

/** A frame of so many bytes, whose return address lies at its top. */
function frame(size: number, more: Partial<UnwindRow> & { readonly confidence?: Confidence } = {}): Drawn {
  const { confidence = 'sure', ...rest } = more;
  const row: UnwindRow = {
    cfa: { kind: 'register', register: SP, offset: size },
    returnAddress: RA,
    registers: new Map([[RA, { kind: 'saved', offset: -8 }]]),
    interrupted: false,
    ...rest,
  };
  return { found: { kind: 'row', row, confidence }, name: 'cfi' };
}

/** Function i lies at 0x1000 + i * 0x100. */
const code = (index: number, offset = 0x10): bigint => 0x1000n + BigInt(index * 0x100 + offset);

/** Walks from function 0 at `pc`; `words` lie at the stack pointer. */
function walk(
  functions: readonly Drawn[],
  words: readonly bigint[],
  more: {
    readonly pc?: bigint;
    readonly ra?: bigint;
    readonly depth?: number;
    readonly hooked?: WalkContext['hooked'];
    readonly isBehindCall?: boolean;
  } = {},
) {
  const asked: { readonly pc: bigint; readonly exact: boolean }[] = [];
  const indexOf = (pc: bigint): number => Math.floor(Number(pc - 0x1000n) / 0x100);
  const image = {
    toCode: Number,
    functionAt: (pc: number) => ({ low: pc - (pc % 0x100) }),
    isEntry: (pc: number) => functions[indexOf(BigInt(pc))]?.isEntry === true,
    isJoinedToEntry: (pc: number) => functions[indexOf(BigInt(pc))]?.isJoined === true,
    find: ({ pc, exact }: { pc: number; exact: boolean }) => {
      asked.push({ pc: BigInt(pc), exact });
      const { found, name = 'cfi' } = functions[indexOf(BigInt(exact ? pc : pc - 1))] ?? {};
      return found && { found, name };
    },
  };
  const images = {
    at: (pc: bigint, back: number) => {
      const index = indexOf(pc - BigInt(back));
      return index >= 0 && index < functions.length ? image : undefined;
    },
  } as unknown as CodeImages;
  const { pc = code(0), ra = 0n, depth = 64, hooked = () => undefined, isBehindCall = true } = more;
  const values: Readonly<Record<string, bigint>> = { sp: 0x8000n, ra };
  const registers = file.read({ register: (name) => values[name] });
  const window = new StackWindow();
  const bytes = new DataView(new ArrayBuffer(words.length * 8));
  for (const [i, word] of words.entries()) bytes.setBigUint64(i * 8, word, true);
  window.add(addr(0x8000n), new Uint8Array(bytes.buffer));
  const walked = new Walk(
    { file, images, unwinder: 'auto', depth, hooked, left: { at: () => undefined, isBehindCall: () => isBehindCall } },
    pc,
    registers,
  );
  const needs: Addr[] = [];
  for (let need = walked.run(window); need !== undefined; need = walked.run(window)) {
    needs.push(need);
    window.addHole(need);
  }
  const frames = walked.frames.map(({ pc: at, exact, cfa, unwinder, confidence }) => ({
    at: Number(at),
    exact,
    cfa: cfa === undefined ? undefined : Number(cfa),
    unwinder,
    confidence,
  }));
  return { frames, end: walked.end, needs, asked };
}

const leaf = { kind: 'undefined' } as const;

t.test('a call is looked up where it was made, the innermost frame where it stands', async (t) => {
  // A call that never returns is its function's last instruction: the return address is that of the next function.
  const { frames, end, asked } = walk([frame(16), frame(16), { isEntry: true }], [1n, code(2, 0), 2n, code(2)]);
  t.match(frames, [
    { at: 0x1010, exact: true, cfa: 0x8010, unwinder: 'cfi', confidence: 'sure' },
    { at: 0x1200, exact: false, cfa: 0x8020, unwinder: 'cfi' },
    { at: 0x1210, exact: false, cfa: undefined, unwinder: undefined },
  ]);
  t.same(end, { reason: 'entry', complete: true });
  t.same(asked, [
    { pc: 0x1010n, exact: true },
    { pc: 0x1200n, exact: false },
  ]);
});

t.test('the entry point is an end at its first instruction, and behind its last call', async (t) => {
  t.same(walk([{ isEntry: true }, frame(16)], [], { pc: code(0, 0) }).end?.reason, 'entry');
  // Behind the last call of the entry point another function begins.
  t.same(walk([frame(16), { isEntry: true }, frame(16)], [0n, code(2, 0)]).end?.reason, 'entry');
  // At the first instruction of what follows the entry point, it is not.
  t.same(walk([frame(16), frame(16)], [0n, 0n], { pc: code(1, 0) }).end?.reason, 'zero-return-address');
});

t.test('how a stack ends', async (t) => {
  const ends = (drawn: Drawn, words: readonly bigint[] = [1n, code(1)]) => walk([drawn, { isEntry: true }], words).end;
  t.match(ends({}), { reason: 'no-unwinder', complete: false });
  t.match(ends({ found: { kind: 'end', reason: 'own-stack' } }), { reason: 'own-stack', complete: true });
  t.match(ends(frame(16), [1n, 0n]), { reason: 'zero-return-address', complete: true });
  t.match(ends(frame(16), [1n, 0x77n]), { reason: 'outside-code', complete: false, pc: addr(0x77n) });
  t.match(ends(frame(16, { registers: new Map([[RA, leaf]]) })), { reason: 'undefined-return-address' });
  const unreadable = walk([frame(64), { isEntry: true }], [1n, 2n]);
  t.match(unreadable.end, { reason: 'unreadable-stack' });
  t.same(unreadable.needs.map(Number), [0x8038]);
});

t.test('a function that would return to its own beginning was jumped to, unless a call ends there', async (t) => {
  const began = (isBehindCall: boolean) =>
    walk([{ isEntry: true }, frame(16)], [0n, code(1, 0)], { pc: code(1), isBehindCall });
  t.same(began(false).end, { reason: 'jumped-to', complete: true });
  t.equal(began(false).frames.length, 1);
  // The function before it ends in a call that never returns.
  t.same([began(true).end?.reason, began(true).frames.length], ['entry', 2]);
  const other = walk([frame(16), { isEntry: true }], [0n, code(1, 0)], { isBehindCall: false });
  t.not(other.end?.reason, 'jumped-to', 'the beginning of another function');
});

t.test('a caller whose return address is lost: nobody called it, or it is not known', async (t) => {
  const lost = (name: UnwinderName) => {
    const outer = { ...frame(16, { registers: new Map([[RA, leaf]]) }), name };
    return walk([frame(16), outer], [1n, code(1)]).end;
  };
  // Call frame information says so on purpose; of code it may only not be found.
  t.match(lost('cfi'), { reason: 'undefined-return-address', complete: true });
  t.match(lost('prologue'), { reason: 'return-address-not-kept', complete: false });
  const same = walk([frame(16), frame(16, { registers: new Map() })], [1n, code(1)]);
  t.match(same.end, { reason: 'return-address-not-kept' });
});

t.test('frames lie further and further out, except those that a trap interrupted', async (t) => {
  t.match(walk([frame(16), frame(0)], [1n, code(1), 0n, 0n]).end, { reason: 'loop' });
  // The handler has a stack of its own, which lies higher.
  const trap = frame(0, {
    interrupted: true,
    registers: new Map([
      [RA, { kind: 'saved', offset: 8 }],
      [SP, { kind: 'saved', offset: 0 }],
    ]),
  });
  const words = [0x8000n, code(1), 3n, code(2)];
  const { frames, end } = walk([trap, frame(32), { isEntry: true }], words);
  t.match(frames, [
    { at: 0x1010, exact: true },
    { at: 0x1110, exact: true, cfa: 0x8020 },
    { at: 0x1210, exact: false },
  ]);
  t.match(end, { reason: 'entry' });
  // A trap that interrupted itself is met once more, and no more.
  const circle = walk([trap], [0x8000n, code(0)]);
  t.match(circle.end, { reason: 'loop' });
  t.equal(circle.frames.length, 2);
});

t.test('a frame that was found through a guess is a guess, and stays one', async (t) => {
  const drawn = [frame(16, { confidence: 'likely' }), frame(16, { confidence: 'guess' }), frame(16), { isEntry: true }];
  const { frames } = walk(drawn, [0n, code(1), 0n, code(2), 0n, code(3)]);
  t.same(
    frames.map(({ confidence }) => confidence),
    ['sure', 'likely', 'guess', 'guess'],
  );
  const mixed = walk(
    [frame(16, { confidence: 'guess' }), frame(16, { confidence: 'likely' }), frame(16)],
    [0n, code(1), 0n, code(2), 0n, 0n],
  );
  t.same(
    mixed.frames.map(({ confidence }) => confidence),
    ['sure', 'guess', 'guess'],
  );
});

t.test('a call through a bad pointer: its caller is still there', async (t) => {
  const { frames, end } = walk([{ isEntry: true }], [], { pc: 0x50n, ra: code(0) });
  t.match(frames, [
    { at: 0x50, exact: true, cfa: 0x8000, unwinder: 'prologue', confidence: 'sure' },
    { at: 0x1010, exact: false, confidence: 'guess' },
  ]);
  t.match(end, { reason: 'entry' });
  const nowhere = walk([{ isEntry: true }], [], { pc: 0x50n, ra: 0x60n });
  t.match(nowhere.end, { reason: 'outside-code' });
  t.equal(nowhere.frames.length, 1);
});

t.test('so many frames as were asked for', async (t) => {
  const words = [0n, code(1), 0n, code(2), 0n, 0n];
  t.equal(walk([frame(16), frame(16), frame(16)], words, { depth: 2 }).frames.length, 2);
  t.match(walk([frame(16), frame(16), frame(16)], words, { depth: 2 }).end, { reason: 'depth', complete: false });
  t.match(walk([frame(16), frame(16), frame(16)], words, { depth: 3 }).end, { reason: 'zero-return-address' });
});

t.test('return addresses that a tracer has replaced', async (t) => {
  const HOOK = 0x9999n;
  const hooked = (hook: HookFrame) => (at: bigint) => (at === HOOK ? hook : undefined);
  const drawn = [frame(16), { isEntry: true }];
  // Behind the frame: the original, and one word more that belongs to the tracer.
  const { frames, end } = walk(drawn, [0n, HOOK, 5n, code(1)], { hooked: hooked({ offset: 8, size: 16 }) });
  t.match(end, { reason: 'entry' });
  t.match(frames, [{ cfa: 0x8010 }, { at: 0x1110 }]);
  // Two tail calls joined to one frame.
  const twice = walk(drawn, [0n, HOOK, HOOK, code(1)], { hooked: hooked({ offset: 0, size: 8 }) });
  t.match(twice.end, { reason: 'entry' });
  const cut = walk(drawn, [0n, HOOK], { hooked: hooked({ offset: 0, size: 8 }) });
  t.match(cut.end, { reason: 'unreadable-stack' });
  t.same(cut.needs.map(Number), [0x8010]);
  // An overwritten stack: no more than 64 are followed.
  const endless = walk(drawn, [0n, ...Array<bigint>(200).fill(HOOK)], { hooked: hooked({ offset: 0, size: 8 }) });
  t.match(endless.end, { reason: 'outside-code', pc: addr(HOOK) });
  const most = (count: number) =>
    walk(drawn, [0n, ...Array<bigint>(count).fill(HOOK), code(1)], { hooked: hooked({ offset: 0, size: 8 }) }).end;
  t.match(most(64), { reason: 'entry' });
  t.match(most(65), { reason: 'outside-code' });
  // What a trap has interrupted goes on where it was, whatever stands there.
  const trap = frame(16, { interrupted: true });
  t.match(walk([trap, { isEntry: true }], [0n, HOOK, code(1)], { hooked: hooked({ offset: 0, size: 8 }) }).end, {
    reason: 'outside-code',
  });
});

t.test('damage in what an unwinder found ends the walk, other errors do not hide', async (t) => {
  const broken = (expression: number[]): Drawn =>
    frame(16, { cfa: { kind: 'expression', expression: Uint8Array.from(expression) } });
  t.match(walk([broken([0x22])], []).end, { reason: 'no-unwinder' });
  const throwing: Drawn = {
    get found(): Found {
      throw new RsptraceError('USAGE', 'not damage');
    },
  };
  t.throws(() => walk([throwing], []), { code: 'USAGE' });
});

t.test('what has started the program is no caller that is missing', async (t) => {
  const outside = 0x9_0000n;
  t.match(walk([frame(16)], [1n, outside]).end, { reason: 'outside-code', complete: false });
  t.same(walk([{ ...frame(16), isJoined: true }], [1n, outside]).end, { reason: 'entry', complete: true });
});
