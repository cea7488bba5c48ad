// The modules that scripts/mutate.mjs changes: what to change, and the tests that should notice, the cheapest first.
// Only modules that do no I/O, and only tests that need no guest, because each mutant runs them once.
export const modules = [
  {
    name: 'derived-polls',
    mutate: ['src/probes/kinds/poll/inlined-chain.ts'],
    tests: ['test/probes/kinds/poll/inlined-chain.test.ts'],
  },
  {
    name: 'budgets',
    mutate: ['src/base/budget.ts'],
    tests: ['test/base/budget.test.ts'],
  },
  {
    name: 'byte-reader',
    mutate: ['src/base/byte-reader.ts'],
    tests: ['test/base/byte-reader.test.ts'],
  },
  {
    name: 'call-stacks',
    mutate: ['src/probes/calls/call-stacks.ts'],
    tests: ['test/probes/calls/call-stacks.test.ts', 'test/probes/calls/switched-stacks.test.ts'],
  },
  {
    name: 'framing',
    mutate: ['src/rsp/wire/framing.ts'],
    tests: ['test/rsp/framing.test.ts'],
  },
];
