import t from 'tap';
import { addr } from '../../src/base/addr.js';
import {
  adviceOnStops,
  endsThere,
  engineSentence,
  extraLines,
  reasonLines,
  summarizeEngines,
} from '../../src/engines/index.js';
import { stackIsRead, trapIsRead } from '../../src/probes/index.js';
import { insideKernel } from '../../src/target/index.js';
import type { ProbeFact } from '../../src/trace/index.js';

const probe = (name: string, engine: ProbeFact['engine'], why?: string): ProbeFact => {
  return { name, address: addr(0x1000n), engine, why };
};
const attached = { isMachineOfQemu: true, isLaunched: false, isProcess: false };
const noMemory = 'no memory for trampolines is known here';

t.test('how many, in one sentence', (t) => {
  const said = (...probes: ProbeFact[]): string => engineSentence(summarizeEngines(probes));
  t.equal(said(probe('a', 'target')), '1 probe, without stops');
  t.equal(said(probe('a', 'target'), probe('b', 'target')), '2 probes, all without stops');
  t.equal(said(probe('a', 'stop', 'x')), '1 probe, which stops the target at each hit');
  t.equal(said(probe('a', 'stop', 'x'), probe('b', 'stop', 'x')), '2 probes, all of which stop the target at each hit');
  t.equal(
    said(probe('a', 'target'), probe('b', 'stop', 'x'), probe('c', 'none', 'x')),
    '1 of 3 probes run without stops, 1 stops the target at each hit, 1 is left out',
  );
  t.end();
});

t.test('probes that nobody asked for by themselves count nowhere, and a sentence says what is not traced', (t) => {
  const wakes = ['wake', 'wake_by_ref'].map((name) => ({ ...probe(name, 'none', noMemory), extra: 'wakes' }));
  const drops = { ...probe('drop of a', 'none', noMemory), extra: 'drops' };
  const summary = summarizeEngines([probe('a', 'stop', noMemory), ...wakes, drops]);
  t.equal(engineSentence(summary), '1 probe, which stops the target at each hit');
  t.match(reasonLines(summary), [/^1: /]);
  t.match(extraLines(summary), [/^wakes are not traced, .*--wakes always/, /^Futures that are dropped inside a task/]);
  t.strictSame(extraLines(summarizeEngines([{ ...probe('wake', 'target'), extra: 'wakes' }])), []);
  t.end();
});

t.test('reasons: what holds for most probes first, each name once', (t) => {
  const many = Array.from({ length: 9 }, (_, i) => probe(`f${i % 5}`, 'stop', 'too short'));
  const summary = summarizeEngines([probe('a', 'stop', stackIsRead), ...many, probe('b', 'target')]);
  t.strictSame(reasonLines(summary), ['9: too short (f0, f1, f2 and 2 more)', `1: ${stackIsRead} (a)`]);
  const different = Array.from({ length: 8 }, (_, i) => probe('f', 'stop', `reason ${i}`));
  t.equal(reasonLines(summarizeEngines(different)).at(-1), '... and 3 other reasons');
  t.end();
});

t.test('reasons that differ in the operands of an instruction, or in its place, are one', (t) => {
  const ends = 'it may have arguments on the stack, and its ends cannot be patched';
  const whys = [
    `${ends}: jmp qword ptr [rip + 0x39df0] at +0x3 may lead anywhere`,
    `${ends}: jmp rax at +0x1c may lead anywhere`,
    `${ends}: notrack jmp rdx at +0x1c may lead anywhere`,
    'je 0x1234 at +0x5 leads into the bytes that the jump overwrites',
    'jne 0x4321 at +0x9 leads into the bytes that the jump overwrites',
    'ret at +0x2 stands before its end',
  ];
  t.strictSame(reasonLines(summarizeEngines(whys.map((why, index) => probe(`f${index}`, 'stop', why)))), [
    `3: ${ends}: its jmp may lead anywhere (f0, f1, f2)`,
    '2: a branch leads into the bytes that the jump overwrites (f3, f4)',
    '1: its ret stands before its end (f5)',
  ]);
  t.end();
});

t.test('advice: the way out of what most probes stop for', (t) => {
  const advice = (why: string, refusal?: string, situation = attached) =>
    adviceOnStops(summarizeEngines([probe('a', 'stop', why)]), refusal, situation)?.code;
  t.equal(advice(noMemory, noMemory), 'start-with-run');
  t.equal(advice(noMemory, noMemory, { ...attached, isLaunched: true }), 'name-scratch');
  t.equal(advice(noMemory, noMemory, { ...attached, isMachineOfQemu: false }), 'name-scratch');
  t.equal(advice('it has a seccomp filter', 'it has a seccomp filter', { ...attached, isProcess: true }), undefined);
  const top = "--scratch top cannot be had: the kernel's pages are larger than 4 KiB";
  const { text } = adviceOnStops(summarizeEngines([probe('a', 'stop', top)]), top, attached) ?? {};
  t.match(text, /^name memory/, 'not what was tried');
  const left = (leftOutBy: ProbeFact['leftOutBy']) =>
    adviceOnStops(summarizeEngines([{ ...probe('a', 'none', 'x'), leftOutBy }]), undefined, attached)?.code;
  t.strictSame((['stops', 'number', 'harm', 'stub'] as const).map(left), [
    'engine-mixed',
    'engine-mixed',
    'newer-gdbserver',
    undefined,
  ]);
  t.equal(advice('--engine stop'), 'leave-engine-stop');
  t.equal(advice(stackIsRead), 'leave-bt');
  t.equal(advice(trapIsRead), 'fewer-traps');
  t.equal(advice('2 harts are in their firmware, which may set mcounteren again'), 'later');
  t.equal(advice('too short'), 'leave-out');
  t.equal(advice(insideKernel, insideKernel), 'trace-in-kernel');
  t.equal(advice(endsThere), undefined, 'a stop that comes once');
  t.equal(adviceOnStops(summarizeEngines([probe('a', 'target')]), undefined, attached), undefined);
  t.end();
});
