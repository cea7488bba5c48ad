// Static agreement: for every instruction that call frame information covers, what code analysis says of the same instruction. Used by
// the tests on the guests and by scripts/unwind-agreement.mjs on any ELF. It gets all that it compares from outside.

/** Addresses that stand in one list of examples. */
const MAX_EXAMPLES = 12;

/**
 * Compares the CFA rule and the return address rule, as what they mean: two rules agree when they give the same number, be it
 * from another register or from another copy of it.
 */
export function compare({ cfi, model, elf }) {
  const result = { instructions: 0, agree: 0, causes: {}, confidence: {}, functions: 0 };
  for (const { low, high } of cfi.ranges()) {
    const start = elf.codes.fromCode(low);
    const bytes = elf.bytesAt(start, high - low);
    if (bytes === undefined) continue;
    const first = cfi.rowAt(start);
    // A part that the compiler moved away begins in the middle of a function that is not known here.
    if (first === undefined || !isEntry(first, model)) {
      note(result.causes, 'parts (not instructions) of functions whose entry is not known: not compared', start);
      continue;
    }
    result.functions++;
    const frames = model.code.analyse([{ start, bytes }]);
    let before;
    for (let offset = 0; offset < high - low; offset++) {
      const pc = elf.codes.fromCode(low + offset);
      const state = frames.stateAt(pc);
      if (state === undefined) continue;
      const row = cfi.rowAt(pc);
      const found = frames.at(pc);
      const confidence = found.kind === 'row' ? found.confidence : found.kind;
      result.instructions++;
      const agrees = found.kind === 'row' && cfaAgrees(row, state, model) && returnAgrees(row, state, model);
      result.confidence[confidence] ??= { agree: 0, differ: 0 };
      result.confidence[confidence][agrees ? 'agree' : 'differ']++;
      if (agrees) result.agree++;
      else note(result.causes, causeOf({ row, state, model, confidence, before, bytes, offset }), pc);
      before = { offset, state, row };
    }
  }
  return result;
}

function note(causes, cause, pc, count = 1) {
  causes[cause] ??= { count: 0, examples: [] };
  causes[cause].count += count;
  if (causes[cause].examples.length < MAX_EXAMPLES) causes[cause].examples.push(`0x${pc.toString(16)}`);
}

function isEntry(row, { entryRow }) {
  return (
    row.cfa.kind === 'register' && row.cfa.register === entryRow.cfa.register && row.cfa.offset === entryRow.cfa.offset
  );
}

/** The value that `register` has in a state, as an offset from the CFA; undefined when it is not known. */
function fromCfa(state, register, { stackPointer, cfaAtEntry }) {
  const value = state.values[register];
  return value?.base === stackPointer ? value.offset - cfaAtEntry : undefined;
}

function cfaAgrees({ cfa }, state, model) {
  return cfa.kind === 'register' && fromCfa(state, cfa.register, model) === -cfa.offset;
}

function returnAgrees(row, state, model) {
  const rule = row.registers.get(row.returnAddress) ?? { kind: 'same' };
  const { returnAddress, stackPointer, cfaAtEntry } = model;
  switch (rule.kind) {
    case 'same':
      return state.holdsOwn(returnAddress);
    case 'saved':
      return [...state.saved()].some(
        ({ address, register }) =>
          register === returnAddress && address.base === stackPointer && address.offset - cfaAtEntry === rule.offset,
      );
    case 'register': {
      const value = state.values[rule.register];
      return value?.base === returnAddress && value.offset === 0;
    }
    case 'undefined':
      return !state.holdsOwn(returnAddress) && ![...state.saved()].some(({ register }) => register === returnAddress);
    default:
      return false;
  }
}

function causeOf({ row, state, model, confidence, before, bytes, offset }) {
  if (confidence === 'guess') return 'no way leads here: unreachable code and padding';
  const cfa = row.cfa.kind === 'register' ? fromCfa(state, row.cfa.register, model) : undefined;
  const cfaDiffers = cfa !== undefined && cfa !== -row.cfa.offset;
  const last = before === undefined ? 0 : bytes[before.offset];
  if (cfaDiffers && model.cfaAtEntry === 8 && (last === 0x9c || (last >= 0x50 && last <= 0x57))) {
    return 'the CFI leaves out a push of inline assembly';
  }
  if (cfaDiffers && before !== undefined && cfaAgrees(before.row, before.state, model) && before.row === row) {
    return 'the CFI gives both halves of a stack adjustment at once';
  }
  if (!cfaDiffers && (row.registers.get(row.returnAddress) ?? { kind: 'same' }).kind === 'same') {
    return 'the CFI has the return address in a register that the code has overwritten for a call that never returns';
  }
  if (confidence === 'likely') return 'reached by a jump whose targets are not known';
  if (confidence === 'unknown') return 'the stack pointer cannot be followed';
  if (row.cfa.kind === 'expression') return 'the CFA is an expression';
  return bytes.length > offset ? 'other' : 'beyond the end';
}
