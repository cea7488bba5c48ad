// Several programs of one machine. A kernel runs two programs in three address spaces, linked at its own addresses; the guest prints which
// program each page table is of, and each ELF's symbols say what is at an address.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { stacksAt } from '../../src/api/index.js';
import { type Architecture, architectureNamed } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { silent } from '../../src/base/logger.js';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { LoadedCode, Looks, OtherPrograms, SampledFrames, Samples } from '../../src/target/stacks/index.js';
import { SourceFrames } from '../../src/target/unwind/index.js';
import type { GuestNanos, Sample } from '../../src/trace/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { long, usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { children, protoc, readPerfetto, scalar } from '../trace/decode-perfetto.js';
import { elfPath, guest, qemuArgv } from './guests/guests.js';

async function opened(name: string) {
  const elf = await ElfFile.open(elfPath(name));
  return { elf, debug: DebugInfo.load(elf) };
}

/** Of the kernel and both programs: functions that lie at the same address. */
const places = ['.text.at1', '.text.at2', '.text.at3'].length;
const perPlace = 24;
const nameOf = (path: string): string => path.replace(/^.*-/, '').replace(/\.elf$/, '');

for (const kernel of usually(['rv-spaces', 'x86-spaces'], (one) => one === 'rv-spaces'))
  t.test(`${kernel}: each stack is its program's`, async (t) => {
    const { elf, debug } = await opened(kernel);
    const programs = [await opened(`${kernel}-alpha`), await opened(`${kernel}-beta`)];
    const [alpha] = programs.map((program) => program.elf);
    const qemu = frozenGuest(t, kernel);
    const session = await connect(`unix:${qemu.socket}`, { waitMs: 5000 });
    const arch = architectureNamed(guest(kernel).arch) as Architecture;
    await arch.prepare();
    const sources = new SourceFrames(elf, debug);
    const others = OtherPrograms.of({ arch, others: programs });
    const code = await LoadedCode.find({ session, elf, arch, debug, logger: silent, others });
    const looks = new Looks(session, arch, code, { depth: 64, walksIdle: true });
    const sampled: Sample[] = [];
    const want = { depth: 64, mode: 'all', idle: true, awaited: false, by: undefined } as const;
    const names = new SampledFrames([{ elf, debug }, ...programs]);
    const samples = new Samples(names, { event: (sample) => sampled.push(sample) }, 1, want);
    const seen = new Map<string, Set<string>>();
    const addresses = ['work', 'mix', 'twin'].map((name) => alpha?.symbols.named(name)[0]?.address ?? addr(0n));
    t.equal(addresses.length, places);
    for (const address of addresses) {
      const kind = arch.breakpointKind(elf.bytesAt(address, 4) ?? new Uint8Array(4));
      const at = { type: 1, address, kind } as const;
      await session.insertBreakpoint(at);
      for (let stop = 0; stop < perPlace; stop++) {
        await session.resume();
        const { harts } = await stacksAt(session, { elf, arch, debug, programs });
        const [look] = await looks.all();
        const [hart] = harts;
        if (look === undefined || hart === undefined) return t.fail('no hart');
        t.equal(hart.other, undefined);
        const [frame] = hart.stack.frames;
        const own = frame && sources.of(frame).at(-1)?.function?.split('::').at(-1);
        t.equal(own, hart.program.symbols.at(address)?.name, `${hart.program.path}: the function`);
        t.equal(hart.stack.frames.at(-1)?.image?.elf, hart.program, 'to the end in its own code');
        t.ok(hart.stack.end.complete, hart.stack.end.reason);
        t.equal(look.privilege === 'user', hart.program !== elf, 'programs in user mode');
        t.equal(look.program, hart.program);
        samples.take(look, 0, 0 as GuestNanos);
        samples.emit();
        const outer = sampled.at(-1)?.stack.findLast(({ name }) => !/\b(_start|start64)$/.test(name))?.name;
        const [owner] = hart.program === elf ? ['labspaces'] : [`${kernel}-${nameOf(hart.program.path)}`];
        t.match(outer, new RegExp(`^${owner}::`), 'a sample says whose function it is');
        const root = look.root === undefined ? '' : `0x${look.root.toString(16)}`;
        if (look.privilege === 'user')
          seen.set(root, (seen.get(root) ?? new Set<string>()).add(nameOf(hart.program.path)));
        await session.stepOver(look.hart.id, [at]);
      }
      await session.removeBreakpoint(at);
    }
    await session.detach();
    const { stdout } = await qemu.ended;
    const printed = [...stdout.matchAll(/LAB process \d+ (\w+) root=(0x\w+)/g)].map(
      ([, name, root]) => `${root} ${name}`,
    );
    t.equal(printed.length, 3);
    t.strictSame([...seen].map(([root, all]) => `${root} ${[...all]}`).sort(), printed.sort());
    t.match(stdout, guest(kernel).checksum);
  });

t.test('rsptrace bt --elf', async (t) => {
  const qemu = frozenGuest(t, 'rv-spaces');
  const session = await connect(`unix:${qemu.socket}`, { waitMs: 5000 });
  // `descend` of alpha, where the kernel and beta have other code.
  const { elf } = await opened('rv-spaces-alpha');
  const address = elf.symbols.named('descend')[0]?.address ?? addr(0n);
  const { privilege } = architectureNamed('riscv64') as Architecture;
  const at = { type: 1, address, kind: 2 } as const;
  await session.insertBreakpoint(at);
  for (let tries = 0; tries < 1000; tries++) {
    await session.resume();
    const batch = session.batch();
    const registers = batch.readRegisters(privilege?.registers.filter((one) => session.target.register(one)));
    const code = batch.readMemory(address, 16);
    await batch.send();
    const isAlpha = Buffer.compare(code.value ?? Buffer.alloc(0), elf.bytesAt(address, 16) ?? Buffer.alloc(1)) === 0;
    if (isAlpha && privilege?.standing(registers.value).privilege === 'user') break;
    await session.stepOver('p01.01', [at]);
  }
  await session.removeBreakpoint(at);
  session.close();
  const paths = ['alpha', 'beta'].flatMap((name) => ['--elf', elfPath(`rv-spaces-${name}`)]);
  const args = ['--remote', qemu.socket, ...paths, elfPath('rv-spaces')];
  const { status, stdout, stderr } = await rsptrace('bt', ...args).ended;
  t.equal(status, 0, stderr);
  t.match(stdout, /^hart \S+ {2}CPU#0 \[running\], in rv-spaces-alpha\n {2}#0 {2}0x[0-9a-f]+ /);
  t.match(stdout, / alpha::descend at .*\n.* alpha::main at .*\n.* _start\n {2}end: the program's entry point\n/);
});

const functions = {
  kernel: ['account', 'dispatch', 'pick', 'map_page'],
  alpha: ['work', 'mix', 'twin', 'descend'],
  beta: ['brew', 'stir', 'twin', 'simmer'],
};

interface Several extends Recording {
  readonly untold_stops: number;
  readonly programs: readonly {
    readonly program: string;
    readonly stops: number;
    readonly functions: Recording['functions'];
  }[];
}

/** Records the kernel and both programs, and compares every count with the guest's own. */
async function recorded(t: Test, kernel: string, args: readonly string[], machine: readonly string[] = []) {
  const probes = [...new Set(Object.values(functions).flat())].flatMap((name) => ['-p', `fn:${name}`]);
  const elfs = ['alpha', 'beta'].flatMap((name) => ['--elf', elfPath(`${kernel}-${name}`)]);
  const run = await runLab(t, kernel, ['--json', ...args, ...probes, ...elfs], { file: 'out.txt', machine });
  const output = JSON.parse(run.stdout) as Several;
  const rows = [
    { name: 'kernel', rows: output.functions },
    ...output.programs.map(({ program, functions: own }) => ({ name: nameOf(program), rows: own })),
  ];
  t.strictSame(
    rows.map(({ name }) => name),
    Object.keys(functions),
  );
  for (const { name, rows: own } of rows) {
    const wanted = functions[name as keyof typeof functions].map(
      (fn) => `${fn} ${run.lab.stats.get(`${name}:${fn}`)?.calls}`,
    );
    t.strictSame(
      own.map((row) => `${row.function.split('::').at(-1)} ${row.calls}`).sort(),
      wanted.sort(),
      `${name}: the guest's own counts`,
    );
    for (const row of own) t.equal(row.lost, 0, `${row.function}: lost`);
  }
  t.equal(output.untold_stops, 0);
  return { ...run, output, text: readFileSync(run.trace, 'utf8') };
}

for (const kernel of ['rv-spaces', 'x86-spaces']) {
  if (kernel === 'rv-spaces' || long)
    t.test(`${kernel}: the kernel without stops, and its programs by stops, in one trace`, async (t) => {
      const { output, text, console } = await recorded(t, kernel, ['--engine', 'auto']);
      const by = (wanted: string) => output.probes.filter(({ engine }) => engine === wanted);
      t.strictSame(new Set(by('target').map((row) => row.function.split('::')[0])), new Set(['labspaces']));
      t.equal(by('target').length, functions.kernel.length);
      t.match(by('stop')[0]?.why, /further programs \(--elf\) are traced by stops alone/);
      // Each process is a track of its own, and its program's calls are on it, by their names among all.
      const printed = [...console.matchAll(/LAB process \d+ (\w+) root=(0x\w+)/g)].map(
        ([, name, root]) => `${root} ${name}`,
      );
      const tracks = [...text.matchAll(/\[\.\.:(\d+)\] is on stack 0x\w+ of space (0x\w+) in [\w-]+-(\w+)/g)];
      t.strictSame(new Set(tracks.map(([, , root, name]) => `${root} ${name}`)), new Set(printed));
      for (const [, track, , name] of tracks) {
        const begun = [...text.matchAll(new RegExp(`\\[ \\d+:${track}\\] +([\\w-]+)::(\\w+)::`, 'g'))];
        t.ok(begun.length > 10, `${begun.length} calls on track ${track}`);
        t.strictSame(
          new Set(begun.map(([, program, crate]) => `${program} ${crate}`)),
          new Set([`${kernel}-${name} ${name}`]),
        );
      }
    });
  if (long)
    t.test(`${kernel}: all by stops`, async (t) => {
      await recorded(t, kernel, ['--engine', 'stop']);
    });
}

if (long)
  t.test('rv-spaces: three harts run the kernel and the processes', async (t) => {
    await recorded(t, 'rv-spaces', ['--engine', 'stop'], ['-smp', '3']);
  });

interface Polled extends Several {
  readonly programs: readonly (Several['programs'][number] & {
    readonly futures: Recording['futures'];
    readonly tasks: readonly {
      readonly future: string;
      readonly space: string;
      readonly polls: number;
      readonly state: string;
    }[];
  })[];
}

for (const kernel of ['rv-spaces', 'x86-spaces'])
  if (kernel === 'rv-spaces' || long)
    t.test(`${kernel}: without a probe the Futures of each program; a task is of one process`, async (t) => {
      const elfs = ['alpha', 'beta'].flatMap((name) => ['--elf', elfPath(`${kernel}-${name}`)]);
      const { stdout, lab, console, trace } = await runLab(t, kernel, ['--json', ...elfs]);
      const { programs, futures } = JSON.parse(stdout) as Polled;
      t.strictSame(futures, [], 'the kernel has none');
      const spaces = [...console.matchAll(/LAB process \d+ (\w+) root=(0x\w+)/g)].map(
        ([, name, root]) => `${root} ${name}`,
      );
      const seen = new Set<string>();
      for (const { program, futures: own, tasks } of programs) {
        const name = nameOf(program);
        const future = name === 'alpha' ? 'stroll' : 'steep';
        const row = own.find((each) => each.future.endsWith(`::${name}::${future}`));
        const { calls = 0, polls = 0 } = lab.stats.get(`${name}:${future}`) ?? {};
        t.equal(row?.polls, polls, `${future}: the guest's own count`);
        t.equal(tasks.length, calls, 'each call is a task');
        t.equal(
          tasks.reduce((sum, task) => sum + task.polls, 0),
          polls,
        );
        for (const { space, state } of tasks) {
          t.equal(state, 'ready');
          seen.add(`${space} ${name}`);
        }
      }
      t.strictSame([...seen].sort(), spaces.sort(), 'two processes of one program have tasks of their own');
      const report = JSON.parse((await rsptrace('report', '--json', '--by', 'process', trace).ended).stdout) as {
        readonly process: readonly { readonly name: string }[];
      };
      const rows = report.process.map(({ name }) => name.replace(/^process (0x\w+) in [\w-]+-(\w+)$/, '$1 $2'));
      t.strictSame(rows.sort(), spaces.sort(), 'report --by process');
      const { tracks } = readPerfetto(children(protoc(readFileSync(trace)), 'packet'));
      const groups = [...tracks.values()].flatMap(({ name, descriptor }) =>
        children(descriptor, 'process').map((about) => `${name} ${scalar(about, 'process_name')}`),
      );
      t.strictSame(
        groups.slice(1).sort(),
        spaces.map((text) => `process ${text.replace(' ', ` ${kernel}-`)}`).sort(),
        'a group in Perfetto is a process, by the name of its program',
      );
    });

t.test('a probe of one program, and an ELF that never runs', async (t) => {
  const elfs = ['rv-spaces-alpha', 'rv-spaces-beta', 'rv-o2'].flatMap((name) => ['--elf', elfPath(name)]);
  const probes = ['-p', 'fn:rv-spaces-alpha/twin', '-p', 'fn:rv-o2.elf/deep7', '-p', 'fn:mix'];
  const { stderr, stdout, lab } = await runLab(t, 'rv-spaces', ['--json', ...probes, ...elfs]);
  const { programs, functions: own } = JSON.parse(stdout) as Several;
  t.strictSame(own, []);
  const rows = programs.flatMap((program) => program.functions ?? []).map((row) => [row.function, row.calls]);
  t.strictSame(
    new Map(rows as [string, number][]),
    new Map([
      ['rv-spaces-alpha::alpha::mix', lab.stats.get('alpha:mix')?.calls],
      ['rv-spaces-alpha::alpha::user::twin', lab.stats.get('alpha:twin')?.calls],
    ]),
  );
  t.match(stderr, /rv-o2\.elf came to none of its 1 place with a probe: it did not run, or/);
  t.notMatch(stderr, /alpha\.elf came to none/);
});

t.test('records have no events of further programs, so that their trace is not replaced', async (t) => {
  const args = ['--engine', 'auto', '--keep-records', '-p', 'fn:account', '-p', 'fn:work'];
  const { trace, folder, lab } = await runLab(t, 'rv-spaces', [...args, '--elf', elfPath('rv-spaces-alpha')]);
  const before = readFileSync(trace);
  const replaced = await rsptrace('recover', '--json', trace).ended;
  t.match(JSON.parse(replaced.stdout), { error: { code: 'USAGE', message: /has events of further programs/ } });
  t.ok(before.equals(readFileSync(trace)), 'the trace is as it was');
  const { stdout } = await rsptrace('recover', '--json', '-o', join(folder, 'records.pftrace'), trace).ended;
  const { events, notes } = JSON.parse(stdout) as { readonly events: number; readonly notes: readonly string[] };
  t.equal(events, 2 * (lab.stats.get('kernel:account')?.calls ?? 0), "begins and ends of the kernel's calls");
  t.match(notes, ['events of further programs are not in these records']);
});

t.test('what --elf cannot be', async (t) => {
  const said = async (t: Test, command: string, ...args: string[]): Promise<unknown> => {
    const { status, stdout } = await rsptrace(command, '--json', ...args).ended;
    t.not(status, 0);
    return (JSON.parse(stdout) as { readonly error: unknown }).error;
  };
  const [kernel, alpha] = [elfPath('rv-spaces'), elfPath('rv-spaces-alpha')];
  const bt = ['bt', '--remote', ':1'] as const;
  t.match(await said(t, ...bt, '--elf', alpha, '--elf', alpha, kernel), { code: 'USAGE', message: /given twice/ });
  t.match(await said(t, ...bt, '--elf', kernel, kernel), { code: 'USAGE', message: /given twice/ });
  t.match(await said(t, ...bt, '--elf', elfPath('x86-spaces-alpha'), kernel), {
    code: 'ARCH_MISMATCH',
    message: /x86-spaces-alpha.elf is for x86_64, and .*rv-spaces.elf for riscv64/,
  });
  t.match(await said(t, ...bt, '--elf', `${alpha}@0x1000`, kernel), { code: 'USAGE', message: /loaded nowhere else/ });
  t.match(await said(t, ...bt, '--elf', `${alpha}@0x1234`, kernel), { code: 'USAGE', message: /at a whole page/ });
  t.match(await said(t, ...bt, '--elf', `${alpha}@1000`, kernel), { code: 'USAGE', message: /'1000' is no address/ });
  t.match(await said(t, 'bt', '--pid', '1', '--elf', alpha, kernel), { code: 'USAGE', message: /of a machine/ });
  t.match(await said(t, ...bt, '--elf', `${alpha}.not`, kernel), { code: 'ELF_UNREADABLE' });
  t.match(await said(t, ...bt, '--elf', alpha), { code: 'USAGE', message: /no ELF is given/ });
  const dry = ['run', '--dry-run', '--elf', alpha, kernel] as const;
  t.match(await said(t, ...dry, '-p', 'fn:shell/work'), { code: 'PROBE_NO_MATCH', hint: /rv-spaces, rv-spaces-alpha/ });
  t.match(await said(t, ...dry, '-p', 'fn:rv-spaces-alpha/pick'), {
    code: 'PROBE_NO_MATCH',
    message: /no function matches/,
  });
  t.match(await said(t, ...dry, '-p', 'count:rv-spaces-alpha/work'), {
    code: 'PROBE_SYNTAX',
    message: /only poll and fn/,
  });
  t.match(await said(t, ...dry, '-p', 'fn:nowhere'), { code: 'PROBE_NO_MATCH' });
  const args = ['--engine', 'target', '-p', 'fn:work', '--elf', alpha, kernel, '-o', join(scratchFolder(t), 'out.txt')];
  t.match(await said(t, 'run', ...args, '--', ...qemuArgv('rv-spaces')), { code: 'ENGINE_UNAVAILABLE' });
});
