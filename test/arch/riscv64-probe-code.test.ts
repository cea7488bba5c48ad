import { target } from './riscv64-target.js';
import { trampolineTests } from './trampoline-tests.js';

trampolineTests({
  ...target,
  counted: ['a0', 'a1', 'a7', 's0', 't1', 't2', 't3', 'zero'],
  usual: ['a0', 't1', 't2', 't3'],
  fixed: ['zero', 't1'],
  leading: 't1',
  nothing: ['s2', 's3'],
  scratch: ['t4', 't5', 't6', 't3'],
  sources: [
    { kind: 'register', name: 'sp' },
    { kind: 'hart', how: 'tp' },
    { kind: 'hart', how: 'at-tp', offset: 4 },
    { kind: 'hart', how: 'at-tp', offset: 2500 },
  ],
  hartOf: ({ how, offset = 0 }, { tp = 0n }) => (how === 'at-tp' ? { at: tp + BigInt(offset) } : tp),
  aliases: { s0: 'fp' },
});
