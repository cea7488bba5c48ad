import { type Addr, addr } from '../../base/addr.js';
import type { CfaRule, RegisterRule, UnwindRow } from '../../base/unwind-row.js';
import { evaluateCfi } from '../../dwarf/index.js';
import { noSpecial, type RegisterFile, type RegisterSet } from './registers.js';
import type { StackWindow } from './stack-window.js';

/** The result of one row for one frame. */
export type Applied =
  | {
      readonly kind: 'caller';
      readonly cfa: Addr;
      /** Undefined if the row says that there is none. */
      readonly returnAddress: bigint | undefined;
      readonly registers: RegisterSet;
    }
  /** Memory that must be read first. */
  | { readonly kind: 'need'; readonly address: Addr }
  /** The CFA or the return address cannot be computed. */
  | { readonly kind: 'lost'; readonly why: 'unreadable-stack' | 'return-address-not-kept' | 'no-unwinder' };

/**
 * Computes the caller of a frame. If a saved register cannot be read, it is unknown in the caller. If the return
 * address cannot be read, the stack ends.
 *
 * @throws RsptraceError `DWARF_DAMAGED`
 */
export function applyRow(
  row: UnwindRow,
  registers: RegisterSet,
  exact: boolean,
  window: StackWindow,
  file: RegisterFile,
): Applied {
  const { stackPointer, returnAddress: link, registerCount } = file.model;
  const cfa = cfaOf(row.cfa, registers, window);
  if (typeof cfa === 'object') return cfa;

  const before = registers.values;
  // A trap keeps all registers that its handler's row does not mention; a call keeps those that the convention names.
  const values = row.interrupted ? before.slice() : new Array<bigint | undefined>(registerCount);
  if (!row.interrupted) {
    for (let number = 0; number < registerCount; number++) {
      values[number] = file.kept[number] ? before[number] : undefined;
    }
  }
  let back: bigint | undefined = registers.numbered(row.returnAddress);
  let backRule: RegisterRule['kind'] = 'same';
  let stack: bigint | undefined;
  for (const [number, rule] of row.registers) {
    if (number >= registerCount && number !== row.returnAddress) continue;
    const value = ruleValue(rule, number, cfa, registers, window);
    if (value === undefined && window.missing !== undefined) return { kind: 'need', address: window.missing };
    if (number === row.returnAddress) {
      back = value;
      backRule = rule.kind;
    }
    if (number === stackPointer) stack = value ?? 0n;
    else if (number < registerCount) values[number] = value;
  }
  values[stackPointer] = stack ?? cfa;
  if (backRule === 'undefined') {
    if (row.returnAddress === link && !exact) return { kind: 'lost', why: 'return-address-not-kept' };
    return { kind: 'caller', cfa, returnAddress: undefined, registers: registers.derive(values, noSpecial) };
  }
  // Behind a call the return address register holds the address of this very place.
  if (backRule === 'same' && !exact && row.returnAddress === link)
    return { kind: 'lost', why: 'return-address-not-kept' };
  if (back === undefined) return { kind: 'lost', why: 'unreadable-stack' };
  const to = file.model.unsigned?.(back, (number) => registers.numbered(number)) ?? back;
  // The values that a trap left in CSRs belong to the frame of its handler only.
  const special = row.interrupted ? noSpecial : registers.special;
  return { kind: 'caller', cfa, returnAddress: to, registers: registers.derive(values, special) };
}

const noCfa: Applied = { kind: 'lost', why: 'no-unwinder' };

function cfaOf(rule: CfaRule, registers: RegisterSet, window: StackWindow): Addr | Applied {
  if (rule.kind === 'register') {
    const base = registers.numbered(rule.register);
    return base === undefined ? noCfa : addr(base + BigInt(rule.offset));
  }
  const value = evaluate(rule.expression, undefined, registers, window);
  if (value !== undefined) return addr(value);
  return window.missing === undefined ? noCfa : { kind: 'need', address: window.missing };
}

function ruleValue(
  rule: RegisterRule,
  number: number,
  cfa: Addr,
  registers: RegisterSet,
  window: StackWindow,
): bigint | undefined {
  window.missing = undefined;
  switch (rule.kind) {
    case 'saved':
      return window.word(cfa, rule.offset);
    case 'same':
      return registers.numbered(number);
    case 'undefined':
      return undefined;
    case 'cfa':
      return addr(cfa + BigInt(rule.offset));
    case 'register':
      return registers.numbered(rule.register);
    case 'expression':
      return evaluate(rule.expression, cfa, registers, window);
    case 'saved-expression': {
      const at = evaluate(rule.expression, cfa, registers, window);
      return at === undefined ? undefined : window.word(at);
    }
  }
}

function evaluate(
  expression: Uint8Array,
  cfa: Addr | undefined,
  registers: RegisterSet,
  window: StackWindow,
): bigint | undefined {
  window.missing = undefined;
  return evaluateCfi(expression, cfa, {
    register: (number) => registers.numbered(number),
    memory: (address, size) => window.bytes(address, size),
  });
}
