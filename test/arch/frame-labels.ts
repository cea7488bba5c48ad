import type { Test } from 'tap';
import type { CompleteArchitecture, FrameAt } from '../../src/arch/index.js';
import { addOffset, addr } from '../../src/base/addr.js';
import { assemble } from '../support/assembled.js';

type Framed = Pick<CompleteArchitecture, 'name' | 'frames'>;

/**
 * Code whose frames are written beside it. Each label `here_N:` stands where the CFA is N above the stack pointer; `fp_N:` where it is N
 * above the frame pointer; a second part says where the return address is: `_ra` in its register, `_at_M` at CFA - M. `none_...` has no
 * frame that could be told, `bottom_...` is code that nobody called.
 */
export function check(t: Test, arch: Framed, source: string): void {
  const { bytes, labels } = assemble(arch, source, /^(?:trap_)?(?:here|fp|r\d+|none|bottom)/);
  const start = addr(0x10000);
  const frames = arch.frames.code.analyse([{ start, bytes }]);
  for (const [label, offset] of labels) {
    const found = frames.at(addOffset(start, offset));
    t.equal(describe(arch, found), label.replace(/__.*$/, ''), label);
  }
  t.ok(labels.length > 0);
  t.equal(arch.frames.code.mayReturnFromTrap(bytes), /\b(sret|mret|iretq|eret)\b/.test(source), 'a return from a trap');
}

export function describe(arch: Framed, found: FrameAt | undefined): string {
  const { stackPointer, framePointer } = arch.frames;
  if (found?.kind !== 'row') return found?.kind === 'bottom' ? 'bottom' : 'none';
  const { cfa, registers, returnAddress, interrupted } = found.row;
  if (cfa.kind !== 'register') return 'expression';
  const base = cfa.register === stackPointer ? 'here' : cfa.register === framePointer ? 'fp' : `r${cfa.register}`;
  const rule = registers.get(returnAddress) ?? { kind: 'same' };
  const back =
    rule.kind === 'same'
      ? 'ra'
      : rule.kind === 'saved'
        ? rule.offset < 0
          ? `at_${-rule.offset}`
          : `up_${rule.offset}`
        : rule.kind;
  const stack = registers.get(stackPointer);
  const sp =
    stack?.kind === 'saved' ? `_sp_${stack.offset}` : stack?.kind === 'register' ? `_spin_${stack.register}` : '';
  return `${interrupted ? 'trap_' : ''}${base}_${cfa.offset}_${back}${sp.replace('-', 'm')}`;
}
