// Who runs on a hart, from the registers: RISC-V Privileged Architecture (satp), Intel SDM volume 3 (CR0, CR3, CPL).
import t from 'tap';
import { riscv64, x86_64 } from '../../src/arch/index.js';

const of = (values: Record<string, bigint>) => ({ register: (name: string) => values[name] });

t.test('riscv64: priv tells who runs, satp in which space, without its ASID', async (t) => {
  const satp = (8n << 60n) | (7n << 44n) | 0x80254n;
  t.same(riscv64.privilege.standing(of({ priv: 0n, satp })), { privilege: 'user', root: 0x80254000n });
  t.same(riscv64.privilege.standing(of({ priv: 1n, satp })), { privilege: 'kernel', root: 0x80254000n });
  t.same(riscv64.privilege.standing(of({ priv: 1n, satp: 0n })), { privilege: 'kernel', root: undefined });
  t.same(riscv64.privilege.standing(of({ priv: 3n, satp })), { privilege: 'firmware', root: undefined });
  t.same(riscv64.privilege.standing(of({})), { privilege: undefined, root: undefined });
});

t.test('x86_64: the level is in cs, but not in real mode; the root in cr3, without its PCID', async (t) => {
  const cr0 = 0x80000011n;
  t.same(x86_64.privilege.standing(of({ cs: 0x33n, cr0, cr3: 0x1234_5805n })), {
    privilege: 'user',
    root: 0x1234_5000n,
  });
  t.same(x86_64.privilege.standing(of({ cs: 0x10n, cr0, cr3: 0x1234_5000n })), {
    privilege: 'kernel',
    root: 0x1234_5000n,
  });
  t.same(x86_64.privilege.standing(of({ cs: 0xf003n, cr0: 0x10n, cr3: 0n })), { privilege: 'kernel', root: undefined });
  t.same(x86_64.privilege.standing(of({ cs: 0x33n })), { privilege: 'user', root: undefined });
});

t.test('riscv64: where a trap returns to counts only while its handler keeps interrupts off', async (t) => {
  const returns = (values: Record<string, bigint>): readonly bigint[] | undefined =>
    riscv64.privilege.trapReturns?.find(of({ sepc: 0x10n, mepc: 0x20n, ...values }));
  // Privileged specification, mstatus: bit 1 SIE, bit 3 MIE.
  t.same(returns({ priv: 3n, mstatus: 0b1010n, sstatus: 0b10n }), [], 'both handlers have saved it, or are over');
  t.same(returns({ priv: 3n, mstatus: 0b0010n, sstatus: 0b10n }), [0x20n]);
  t.same(returns({ priv: 3n, mstatus: 0b1000n, sstatus: 0n }), [0x10n], 'firmware that has interrupted a handler');
  t.same(returns({ priv: 1n, mstatus: 0n, sstatus: 0n }), [0x10n], 'the trap to the firmware is over');
  t.same(returns({ priv: 1n, mstatus: 0n, sstatus: 0b10n }), []);
  t.same(returns({}), [0x10n, 0x20n], 'a stub that says nothing of the status');
  t.same(returns({ mstatus: 0b1010n }), [], 'mstatus has the bits of sstatus');
});
