// Traps of kernels, against QEMU's own log of every trap that it delivers (`-d int`).
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { linuxGuest } from '../support/linux/boot.js';
import { long, usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath } from './guests/guests.js';

interface TrapRow {
  readonly function: string;
  readonly calls: number;
  readonly lost: number;
  readonly total_ns: number;
  readonly times_at_most?: true;
}

interface Traps extends Recording {
  readonly traps: readonly TrapRow[];
  readonly trap_returns_alone: number | null;
}

/** How often each cause comes in QEMU's log, but for those that go to firmware. */
function delivered(log: string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const line of readFileSync(log, 'latin1').split('\n')) {
    const [, riscv] = /^riscv_cpu_do_interrupt: .*desc=(\w+)/.exec(line) ?? [];
    const [, vector] = /^\s*\d+: v=([0-9a-f]+) /.exec(line) ?? [];
    const cause = riscv ?? vector;
    if (cause !== undefined) counts[cause] = (counts[cause] ?? 0) + 1;
  }
  return counts;
}

const sum = (rows: readonly TrapRow[], kind: string): number =>
  rows.filter((row) => row.function.startsWith(kind)).reduce((all, { calls }) => all + calls, 0);

/** Per guest: what QEMU calls its traps, and what they are here. */
const guests = [
  ['rv-spaces', { user_ecall: 'syscall::', s_timer: 'irq::supervisor_timer' }],
  ['x86-spaces', { '80': 'syscall::', '20': 'irq::vector_32' }],
  ['rvm-o2', { m_timer: 'irq::machine_timer' }],
  ['x86-o2', { '20': 'irq::vector_32' }],
] as const;

for (const [guest, names] of usually(guests, ([guest]) => guest.endsWith('spaces')))
  t.test(`${guest}: each trap is an event, as often as QEMU delivers it`, async (t) => {
    const log = join(scratchFolder(t), 'int.log');
    const machine = ['-icount', 'shift=0', '-d', 'int', '-D', log];
    const { stdout, lab } = await runLab(t, guest, ['--json', '-p', 'trap:**'], { machine });
    const { traps } = JSON.parse(stdout) as Traps;
    const counts = delivered(log);
    for (const [cause, name] of Object.entries(names)) t.equal(sum(traps, name), counts[cause] ?? 0, name);
    const never = traps.filter(({ lost }) => lost > 0);
    // Programs end in a system call, and the kernel in nothing else.
    const programs = [...lab.stats.keys()]
      .filter((key) => key.endsWith(':main'))
      .map((key) => lab.stats.get(key)?.calls ?? 0);
    t.equal(
      never.reduce((all, { lost }) => all + lost, 0),
      programs.reduce((all, calls) => all + calls, 0),
      'the others return',
    );
    t.ok(
      traps.every(({ calls, lost, total_ns }) => calls === lost || total_ns > 0),
      'and take time',
    );
  });

t.test('one kind of traps is asked for with functions of the kernel', async (t) => {
  const log = join(scratchFolder(t), 'int.log');
  const machine = ['-icount', 'shift=0', '-d', 'int', '-D', log];
  const options = ['--json', '-p', 'syscall:**', '-p', '!syscall:1', '-p', 'fn:dispatch'];
  const { stdout, lab } = await runLab(t, 'rv-spaces', options, { machine });
  const { traps, functions, trap_returns_alone: alone } = JSON.parse(stdout) as Traps;
  t.same(
    traps.map((row) => row.function).sort(),
    ['syscall::0', 'syscall::2'],
    'no interrupts, and not what is left out',
  );
  t.equal(alone, null, 'others return too');
  const dispatch = lab.stats.get('kernel:dispatch')?.calls;
  t.match(functions, [{ function: /dispatch$/, calls: dispatch }], 'functions have rows of their own');
  // One system call does not return.
  const isBound = [...traps, ...functions].flatMap((row) => (row.calls > row.lost ? [row.times_at_most] : []));
  t.same(isBound, [true, true], 'a trap stops in the midst of calls that need no stop');
});

t.test('what cannot be is an error', async (t) => {
  const kernel = elfPath('rv-sched');
  for (const [probe, code] of [
    ['trap:**', 'PROBE_NO_MATCH'],
    ['irq:** if len > 1', 'PROBE_SYNTAX'],
    ['!irq:**', 'PROBE_SYNTAX'],
  ] as const) {
    const { status, stdout } = await rsptrace('run', '--dry-run', '--json', '-p', probe, kernel).ended;
    t.not(status, 0);
    t.match(JSON.parse(stdout), { error: { code } }, probe);
  }
});

/** From machine mode, which keeps the counter to itself, to supervisor mode: `work` runs 200,000 instructions, three times. */
const closed = `
        .globl  _start, work
_start: la      t0, stop
        csrw    mtvec, t0
        li      t0, -1
        csrw    pmpaddr0, t0
        li      t0, 31
        csrw    pmpcfg0, t0
        csrw    mcounteren, zero
        li      t0, 0x800
        csrw    mstatus, t0
        la      t0, super
        csrw    mepc, t0
        mret
super:  li      s0, 3
1:      call    work
        addi    s0, s0, -1
        bnez    s0, 1b
        ecall
        .balign 4
stop:   li      t0, 0x100000
        li      t1, 0x5555
        sw      t1, 0(t0)
2:      j       2b
        .type   work, @function
work:   li      t0, 100000
3:      addi    t0, t0, -1
        bnez    t0, 3b
        ret
        .size   work, . - work
`;

t.test('a counter that only machine mode may read counts in supervisor mode, too', async (t: Test) => {
  const folder = scratchFolder(t);
  const file = (name: string): string => join(folder, name);
  writeFileSync(file('k.s'), closed);
  execFileSync('riscv64-linux-gnu-as', ['-o', file('k.o'), file('k.s')]);
  execFileSync('riscv64-linux-gnu-ld', ['-Ttext=0x80000000', '-o', file('k.elf'), file('k.o')]);
  const qemu = ['qemu-system-riscv64', '-M', 'virt', '-nographic', '-bios', 'none', '-icount', 'shift=0'];
  const options = ['--json', '--engine', 'stop', '-p', 'fn:work', '-p', 'trap:**', '-o', file('t.jsonl')];
  const words = ['run', ...options, file('k.elf'), '--', ...qemu, '-kernel', file('k.elf')];
  const { functions, traps } = await rsptrace(...words).json<Traps>();
  const [work] = functions;
  t.equal(work?.calls, 3);
  // An instruction a nanosecond.
  const each = (work?.total_ns ?? 0) / 3;
  t.ok(each > 199_000 && each < 210_000, `${each} ns`);
  t.match(traps, [{ function: 'trap::call_from_supervisor', calls: 1, lost: 1 }]);
});

/** Calls `work` and then `other` 600 times each, while a timer interrupts every few hundred instructions. */
const ticking = `
        .globl  _start, work, other
_start: la      t0, tick
        csrw    mtvec, t0
        li      sp, 0x80100000
        li      t0, 128
        csrw    mie, t0
        csrsi   mstatus, 8
        li      s0, 60
1:      call    work
        addi    s0, s0, -1
        bnez    s0, 1b
        li      s0, 60
2:      call    other
        addi    s0, s0, -1
        bnez    s0, 2b
        li      t0, 0x100000
        li      t1, 0x5555
        sw      t1, 0(t0)
3:      j       3b
        .irp    name, work, other
        .type   \\name, @function
\\name: addi    sp, sp, -16
        sd      ra, 8(sp)
        sd      s0, 0(sp)
        addi    s0, s0, 1
        ld      s0, 0(sp)
        ld      ra, 8(sp)
        addi    sp, sp, 16
        ret
        .size   \\name, . - \\name
        .endr
        .balign 4
        .type   tick, @function
tick:   addi    sp, sp, -16
        sd      t0, 0(sp)
        sd      t1, 8(sp)
        li      t0, 0x200bff8
        ld      t1, 0(t0)
        addi    t1, t1, 7
        li      t0, 0x2004000
        sd      t1, 0(t0)
        ld      t0, 0(sp)
        ld      t1, 8(sp)
        addi    sp, sp, 16
        mret
        .size   tick, . - tick
end:
`;

t.test('an interrupt of a trampoline has the function that it stands for, also out of kept records', async (t) => {
  const folder = scratchFolder(t);
  const file = (name: string): string => join(folder, name);
  writeFileSync(file('k.s'), ticking);
  execFileSync('riscv64-linux-gnu-as', ['-o', file('k.o'), file('k.s')]);
  execFileSync('riscv64-linux-gnu-ld', ['-Ttext=0x80000000', '-o', file('k.elf'), file('k.o')]);
  const symbols = execFileSync('riscv64-linux-gnu-nm', [file('k.elf')], { encoding: 'utf8' });
  const at = (name: string): string => `0x${BigInt(`0x${symbols.match(`([0-9a-f]+) . ${name}\n`)?.[1]}`).toString(16)}`;
  const qemu = ['qemu-system-riscv64', '-M', 'virt', '-nographic', '-bios', 'none', '-icount', 'shift=0'];
  const machine = [...qemu, '-d', 'int', '-D', file('int.log'), '-kernel', file('k.elf')];
  const probes = ['-p', 'irq:**', '-p', 'fn:work', '-p', 'fn:other'];
  const run = await rsptrace('run', ...probes, '-o', file('t.records'), file('k.elf'), '--', ...machine).ended;
  t.equal(run.status, 0, run.stderr.slice(-300));
  const read = await rsptrace('convert', file('t.records'), '-o', file('t.jsonl')).ended;
  t.equal(read.status, 0, read.stderr.slice(-300));

  const log = readFileSync(file('int.log'), 'utf8');
  const interrupted = [...log.matchAll(/async:1, cause:0*7, epc:0x0*([0-9a-f]+)/g)].map(([, pc]) => `0x${pc}`);
  const isOurs = (pc = '0x0'): boolean => BigInt(pc) >= BigInt(at('end'));
  t.ok(interrupted.filter(isOurs).length > 10, 'most are in trampolines, which are outside of the kernel');
  const lines = readFileSync(file('t.jsonl'), 'utf8').split('\n');
  const shown = lines.flatMap((line) => {
    const [, pc, tracing] = /"detail":"pc: (\w+), from: kernel(?:, tracing: (\w+))?"/.exec(line) ?? [];
    return pc ? [{ pc, tracing }] : [];
  });
  t.equal(shown.length, interrupted.length);
  const text = shown.filter((_, i) => !isOurs(interrupted[i]));
  t.same(
    text.map(({ pc }) => pc),
    interrupted.filter((pc) => !isOurs(pc)),
    'what is interrupted elsewhere is as QEMU says',
  );
  const served = shown.filter((_, i) => isOurs(interrupted[i]));
  const of = (name: string): unknown[] =>
    served.filter(({ tracing }) => tracing === name).map(() => ({ pc: at(name), tracing: name }));
  t.ok(of('work').length > 0 && of('other').length > 0);
  t.same(served, [...of('work'), ...of('other')], 'and trampolines are those of the one, then of the other');
});

/** Calls 64 five times with 5 to 1, of which the kernel returns 100 more; a `brk`; a call that powers off (PSCI). */
const arm = `
        .globl  _start
_start: adr     x0, vectors
        msr     vbar_el1, x0
        adr     x0, user
        msr     elr_el1, x0
        mov     x0, #0x40100000
        msr     sp_el0, x0
        mov     x0, #0x40200000
        mov     sp, x0
        mov     x0, #0x3c0
        msr     spsr_el1, x0
        eret
user:   mov     x19, #5
1:      mov     x8, #64
        mov     x0, x19
        svc     #0
        sub     x19, x19, #1
        cbnz    x19, 1b
        brk     #1
        mov     x8, #93
        svc     #0
        .balign 2048
vectors:
        .rept   8
        b       .
        .balign 128
        .endr
        b       lower
        .balign 128
        .rept   7
        b       .
        .balign 128
        .endr
        .type   lower, @function
lower:  mrs     x1, esr_el1
        lsr     x1, x1, #26
        cmp     x1, #60
        b.ne    2f
        mrs     x1, elr_el1
        add     x1, x1, #4
        msr     elr_el1, x1
        eret
2:      cmp     x8, #93
        b.eq    3f
        add     x0, x0, #100
        eret
3:      movz    x0, #0x8400, lsl #16
        movk    x0, #8
        hvc     #0
        b       .
        .size   lower, . - lower
        .type   _start, @function
        .size   _start, user - _start
        .irp    call, put, one, two, three, four, five, six, seven
        .type   sys_\\call, @function
sys_\\call:
        ret
        .size   sys_\\call, . - sys_\\call
        .endr
        .data
        .type   table, @object
table:  .zero   64 * 8
        .quad   sys_put, 0, sys_one, sys_two, sys_three, sys_four, sys_five, sys_six, sys_seven
        .size   table, . - table
        .type   alias, @object
        .set    alias, table
        .size   alias, 73 * 8
`;

t.test("aarch64: calls, named by the kernel's table, their arguments and results", async (t: Test) => {
  const folder = scratchFolder(t);
  const file = (name: string): string => join(folder, name);
  writeFileSync(file('k.s'), arm);
  execFileSync('aarch64-linux-gnu-as', ['-o', file('k.o'), file('k.s')]);
  execFileSync('aarch64-linux-gnu-ld', ['-Ttext=0x40080000', '-o', file('k.elf'), file('k.o')]);
  const qemu = ['qemu-system-aarch64', '-M', 'virt', '-cpu', 'cortex-a72', '-nographic', '-kernel', file('k.elf')];
  const options = ['--json', '-p', 'trap:**', '-o', file('t.jsonl')];
  t.match((await rsptrace('run', ...options, file('k.elf'), '--', ...qemu).json<Traps>()).traps, [
    { function: 'syscall::93', calls: 1, lost: 1 },
    { function: 'syscall::put', calls: 5, lost: 0 },
    { function: 'trap::brk', calls: 1, lost: 0 },
  ]);
  const lines = readFileSync(file('t.jsonl'), 'utf8').trim().split('\n');
  const calls = lines.map((line) => JSON.parse(line) as { name: string; result?: string; detail?: string });
  t.same(
    calls
      .filter(({ name }) => name === 'syscall::put')
      .map(({ result, detail }) => [result, /arg0: \d+/.exec(detail ?? '')?.[0]]),
    [5, 4, 3, 2, 1].map((n) => [`${100 + n}`, `arg0: ${n}`]),
  );
});

if (long)
  t.test("Debian's Linux: system calls have names, and are as many as its program makes", async (t) => {
    const { elf, command } = linuxGuest(t, 'riscv64');
    const args = [
      'run',
      '--json',
      '-p',
      'syscall:**',
      '-o',
      `${elf}.jsonl`,
      elf,
      '--',
      ...command(),
      '-icount',
      'shift=1',
    ];
    const rows = new Map((await rsptrace(...args).json<Traps>()).traps.map((row) => [row.function, row]));
    // 20 children with 50 calls each, and 1000 of its own.
    t.match(rows.get('syscall::getppid'), { calls: 2000, lost: 0 });
    t.match(rows.get('syscall::exit'), { calls: 20, lost: 20 });
    t.match(rows.get('syscall::wait4'), { calls: 20, lost: 0 });
    t.match(rows.get('syscall::reboot'), { calls: 1 });
  });
