// The modules that scripts/mutate.mjs changes: what to change, and the tests that should notice, the cheapest first.
// Only modules that do no I/O, and only tests that boot no guest, because each mutant runs them once.
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
    mutate: ['src/calls/call-stacks.ts'],
    tests: ['test/calls/call-stacks.test.ts', 'test/calls/switched-stacks.test.ts'],
  },
  {
    name: 'framing',
    mutate: ['src/rsp/wire/framing.ts'],
    tests: ['test/rsp/framing.test.ts'],
  },
  {
    name: 'dwarf-expressions',
    mutate: ['src/dwarf/expr.ts', 'src/dwarf/expr-stack.ts', 'src/dwarf/expr-values.ts'],
    tests: ['test/dwarf/logic.test.ts'],
  },
  {
    name: 'dwarf-units',
    mutate: ['src/dwarf/abbrev.ts', 'src/dwarf/form-sizes.ts', 'src/dwarf/forms.ts'],
    tests: ['test/dwarf/forms.test.ts', 'test/dwarf/units.test.ts', 'test/dwarf/lists.test.ts'],
  },
  {
    name: 'dwarf-lists',
    mutate: ['src/dwarf/ranges.ts', 'src/dwarf/location.ts'],
    tests: ['test/dwarf/lists.test.ts', 'test/dwarf/units.test.ts', 'test/dwarf/logic.test.ts'],
  },
  {
    name: 'dwarf-frames',
    mutate: ['src/dwarf/cfi-entries.ts', 'src/dwarf/cfi-program.ts'],
    tests: ['test/dwarf/cfi-program.test.ts', 'test/dwarf/cfi-entries.test.ts', 'test/dwarf/cfi.test.ts'],
  },
  {
    name: 'decoders',
    mutate: ['src/arch/riscv64/decode.ts'],
    tests: ['test/arch/riscv64-decode.test.ts'],
  },
  {
    name: 'walk',
    mutate: ['src/target/unwind/walk.ts'],
    tests: ['test/target/unwind/walk-steps.test.ts', 'test/target/unwind/walk.test.ts'],
  },
  {
    name: 'writers',
    mutate: ['src/trace/formats/perfetto/protobuf.ts', 'src/trace/formats/lanes.ts'],
    tests: ['test/trace/formats/perfetto/protobuf.test.ts', 'test/trace/formats/lanes-steps.test.ts'],
  },
  {
    name: 'conditions',
    mutate: ['src/probes/expressions/condition.ts', 'src/probes/expressions/literal.ts'],
    tests: [
      'test/probes/expressions/literal.test.ts',
      'test/probes/expressions/condition.test.ts',
      'test/probes/kinds/parse.test.ts',
    ],
  },
];
