import type { PrivilegeModel } from '../privilege.js';

const names = ['cs', 'cr0', 'cr3'];

/**
 * Intel SDM volume 3, "Control Registers", "Privilege Levels".
 *
 *   cs: 1:0 the current level | cr0: 31 PG, 0 PE | cr3: 51:12 root
 */
export const privilege: PrivilegeModel = {
  registers: names,
  standing(registers) {
    const [cs, cr0, cr3] = names.map((name) => registers.register(name));
    // In real mode the low bits of a segment are part of its address.
    const isReal = cr0 !== undefined && (cr0 & 1n) === 0n;
    const level = cs === undefined ? undefined : !isReal && (cs & 3n) === 3n ? 'user' : 'kernel';
    const pages = cr3 !== undefined && (cr0 === undefined || ((cr0 >> 31n) & 1n) === 1n);
    return { privilege: level, root: pages ? cr3 & 0x000f_ffff_ffff_f000n : undefined };
  },
  /** Both `mov cr3, register` and `lgdt` or `lidt` of memory. One of them may be a constant by chance. */
  isKernelCode(code) {
    let [hasRoot, hasTable] = [false, false];
    for (let at = code.indexOf(0x0f); at >= 0 && at + 2 < code.length; at = code.indexOf(0x0f, at + 1)) {
      const [opcode, operand = 0] = [code[at + 1], code[at + 2]];
      hasRoot ||= opcode === 0x22 && operand >= 0xd8 && operand <= 0xdf;
      hasTable ||= opcode === 0x01 && operand < 0xc0 && ((operand >> 3) & 7) >> 1 === 1;
    }
    return hasRoot && hasTable;
  },
};
