// Context switches of kernels, against the guests' own counts and QEMU's.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { linuxGuest } from '../support/linux/boot.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';

interface ThreadRow {
  readonly thread: string;
  readonly switches: number;
  readonly lost: number;
  readonly harts: readonly number[];
  readonly on_cpu_ns: number;
  readonly longest_on_cpu_ns: number;
}

interface Switches extends Recording {
  readonly threads: readonly ThreadRow[];
  readonly switches_missed: number;
  readonly threads_left_out: readonly string[];
}

/** Of `report --story`. */
interface Story {
  readonly total_ns: number | null;
  readonly on_hart_ns: number | null;
  readonly waiting_ns: number;
  readonly waits: number;
  readonly tree: {
    readonly children: readonly { readonly kind: string; readonly name: string; readonly woken_by?: string | null }[];
  };
}

/** What `middle` calls. */
const inside = ['labsched::work::inner', 'labsched::work::inner'];

const sum = (rows: readonly ThreadRow[]): number => rows.reduce((all, { switches }) => all + switches, 0);
const threads = 8;

/** What `report --by thread` has of a saved trace. */
async function reported(trace: string): Promise<Record<string, number>> {
  const { stdout } = await rsptrace('report', '--json', '--by', 'thread', trace).ended;
  const { thread } = JSON.parse(stdout) as { thread: readonly { name: string; calls: number }[] };
  return Object.fromEntries(thread.map(({ name, calls }) => [name, calls]));
}

const runs = [
  ['rv-sched', 'auto', 'target'],
  ['x86-sched', 'auto', 'target'],
  ['rv-sched', 'stop', 'stop'],
  ['x86-sched', 'stop', 'stop'],
] as const;

// Stops have every switch in the next test, too.
for (const [guest, engine, used] of usually(runs, ([guest, engine]) => guest === 'rv-sched' && engine === 'auto'))
  t.test(`${guest}, --engine ${engine}: every switch of three harts, and who has them`, async (t) => {
    const wakes = ['-p', 'fn:labsched::sched::sleep', '-p', 'fn:labsched::sched::wakeup'];
    const options = ['--json', '--engine', engine, '-p', 'switch:', '-p', 'fn:labsched::work::*', ...wakes];
    const { stdout, lab, trace } = await runLab(t, guest, options, { machine: ['-smp', '3'] });
    const { threads: rows, switches_missed: missed, probes } = JSON.parse(stdout) as Switches;
    t.equal(probes.find((probe) => probe.function === 'context switches in swtch')?.engine, used);
    t.equal(sum(rows), lab.stats.get('swtch')?.calls, "the guest's own count");
    t.equal(missed, 0);
    t.same(
      rows.map(({ thread }) => thread).filter((name) => /^TABLE\.threads\[\d\]$/.test(name)).length,
      threads,
      'a row a thread',
    );
    t.ok(
      rows.every(
        ({ harts, thread }) =>
          /threads/.test(thread) || (/^TABLE\.schedulers\[\d\]$/.test(thread) && harts.length === 1),
      ),
      'and one a scheduler, which stays on its hart',
    );
    t.ok(rows.every(({ lost, on_cpu_ns: all, longest_on_cpu_ns: one }) => lost === 0 && one > 0 && one <= all));
    const read = await reported(trace);
    t.notOk(
      Object.keys(read).some((name) => name.startsWith('hart')),
      'and not those of harts once more',
    );
    t.match(read, Object.fromEntries(rows.map(({ thread, switches }) => [thread, switches])), 'the trace has them too');
    // It gives way once by itself, and once in that `inner` whose number is even.
    for (const nth of ['1', '2', '3']) {
      const told = await rsptrace('report', '--json', '--story', 'work::middle', '--nth', nth, trace).ended;
      const { story } = JSON.parse(told.stdout) as { story: Story };
      t.match(story, { goes_with: 'thread', waits: 2, interrupts: 0 });
      t.same(
        story.tree.children.filter(({ kind }) => kind === 'call').map(({ name }) => name),
        inside,
      );
      t.equal((story.on_hart_ns ?? 0) + story.waiting_ns, story.total_ns);
    }
    // Who sleeps is woken by a call for the same channel, of another thread.
    const slept = await rsptrace('report', '--json', '--story', 'sched::sleep', '--nth', '3', trace).ended;
    const { story } = JSON.parse(slept.stdout) as { story: Story };
    const [wait] = story.tree.children.filter(({ kind }) => kind === 'wait');
    t.match(wait?.woken_by, /^labsched::sched::wakeup of TABLE\.threads\[\d\]$/);
    t.equal(story.waits, 1);
  });

t.test('threads by their names', async (t) => {
  const options = ['--json', '-p', 'switch:TABLE.threads*', '-p', '!switch:TABLE.threads[3]'];
  const { stdout, trace } = await runLab(t, 'rv-sched', options, { machine: ['-smp', '3'] });
  const { threads: rows, threads_left_out: others } = JSON.parse(stdout) as Switches;
  t.same(
    rows.map(({ thread }) => thread).sort(),
    [0, 1, 2, 4, 5, 6, 7].map((i) => `TABLE.threads[${i}]`),
  );
  t.same(
    others.filter((name) => !/^TABLE\.schedulers\[\d\]$/.test(name)),
    ['TABLE.threads[3]'],
    'the others are said',
  );
  t.same(
    Object.keys(await reported(trace)).sort(),
    rows.map(({ thread }) => thread).sort(),
    'nor are they in the trace',
  );
  const stops = ['--json', '--engine', 'stop', '-p', 'switch:TABLE.threads*'];
  const all = await runLab(t, 'rv-sched', stops, { machine: ['-icount', 'shift=0'] });
  const every = JSON.parse(all.stdout) as Switches;
  // From a scheduler to a thread, and back.
  t.equal(2 * sum(every.threads), all.lab.stats.get('swtch')?.calls, "the guest's own count");
});

/** What `switch:` finds, and where. */
const linux = [
  ['riscv64', '__switch_to'],
  ['x86_64', '__switch_to_asm'],
] as const;

for (const [arch, name] of usually(linux, ([arch]) => arch === 'riscv64'))
  t.test(`Linux on ${arch}: as many switches as QEMU has carried out`, async (t: Test) => {
    const { elf, command, counting, counts } = linuxGuest(t, arch);
    const dry = await rsptrace('run', '--dry-run', '--json', '-p', 'switch:', elf).ended;
    const { probes } = JSON.parse(dry.stdout) as { probes: readonly { function: string; address: string }[] };
    t.same(
      probes.map((probe) => probe.function),
      [`context switches in ${name}`],
    );
    const address = BigInt(probes[0]?.address ?? 0);
    const words = arch === 'x86_64' ? ['nokaslr'] : [];
    const trace = join(scratchFolder(t), 'out.pftrace');
    const args = [
      'run',
      '--json',
      '-p',
      'switch:',
      '-o',
      trace,
      elf,
      '--',
      ...command(...words),
      ...counting([address]),
    ];
    const { threads: rows } = await rsptrace(...args).json<Switches>();
    t.equal(
      sum(rows),
      counts()
        .get(address)
        ?.reduce((all, count) => all + count, 0),
    );
    const names = rows.map(({ thread }) => thread);
    for (const known of [/^kthreadd:2$/, /^swapper\/0:0$/, /^kworker\/0:\S+:\d+$/])
      t.ok(
        names.some((one) => known.test(one)),
        String(known),
      );
  });

/** Per architecture: a switch, what looks like one and is none, and one with another way to say where it goes. */
const sources = {
  'aarch64-linux-gnu-': `
change: mov x10, #64
        add x8, x0, x10
        mov x9, sp
        stp x19, x20, [x8], #16
        stp x21, x22, [x8], #16
        stp x23, x24, [x8], #16
        stp x25, x26, [x8], #16
        stp x27, x28, [x8], #16
        stp x29, x9, [x8], #16
        str x30, [x8]
        add x8, x1, x10
        ldp x19, x20, [x8], #16
        ldp x21, x22, [x8], #16
        ldp x23, x24, [x8], #16
        ldp x25, x26, [x8], #16
        ldp x27, x28, [x8], #16
        ldp x29, x9, [x8], #16
        ldr x30, [x8]
        mov sp, x9
        ret
jump:   ldp x29, x9, [x0]
        mov sp, x9
        ret`,
  'riscv64-linux-gnu-': `
change: sd ra, 0(a1)
        sd sp, 8(a1)
        sd s0, 16(a1)
        sd s1, 24(a1)
        sd s2, 32(a1)
        sd s3, 40(a1)
        sd s4, 48(a1)
        sd s5, 56(a1)
        ld ra, 0(a0)
        ld sp, 8(a0)
        ld s0, 16(a0)
        ret
jump:   ld ra, 0(a0)
        ld sp, 8(a0)
        ret
save:   sd ra, 0(a0)
        sd sp, 8(a0)
        ret`,
  '': `
change: push rbp
        push rbx
        push r12
        push r13
        push r14
        push r15
        mov [rdi], rsp
        mov rsp, rsi
        pop r15
        pop r14
        pop r13
        pop r12
        pop rbx
        pop rbp
        ret
frame:  push rbp
        mov rbp, rsp
        mov rsp, rbp
        pop rbp
        ret`,
};

for (const [tools, code] of Object.entries(sources))
  t.test(`${tools || 'x86_64-linux-gnu-'}: what switches stacks is found by its code`, async (t: Test) => {
    const folder = scratchFolder(t);
    const file = (name: string): string => join(folder, name);
    const labels = ['change', 'jump', 'save', 'frame'].filter((label) => code.includes(`${label}:`));
    const types = labels.map((label) => `.type ${label}, @function\n`.replace('@', '%')).join('');
    const syntax = tools === '' ? '.intel_syntax noprefix\n' : '';
    writeFileSync(
      file('k.s'),
      `${syntax}.globl _start\n${types}_start: ret
${code}\n`,
    );
    execFileSync(`${tools}as`, ['-o', file('k.o'), file('k.s')]);
    execFileSync(`${tools}ld`, ['-Ttext=0x80000000', '-o', file('k.elf'), file('k.o')]);
    const dry = async (probe: string) =>
      JSON.parse((await rsptrace('run', '--dry-run', '--json', '-p', probe, file('k.elf')).ended).stdout);
    t.match(await dry('switch:'), { probes: [{ function: 'context switches in change' }] });
    t.match(await dry('switch:_start'), { error: { code: 'PROBE_NO_MATCH' } });
    t.match(await dry('switch:** if a > 1'), { error: { code: 'PROBE_SYNTAX' } });
  });
