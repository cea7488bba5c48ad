// Several programs of one machine. A kernel runs two programs in three address spaces, linked at its own addresses; the guest prints which
// program each page table is of, and each ELF's symbols say what is at an address.
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
import { frozenGuest, rsptrace } from '../support/command.js';
import { elfPath, guest } from './guests/guests.js';

async function opened(name: string) {
  const elf = await ElfFile.open(elfPath(name));
  return { elf, debug: DebugInfo.load(elf) };
}

/** Of the kernel and both programs: functions that lie at the same address. */
const places = ['.text.at1', '.text.at2', '.text.at3'].length;
const perPlace = 24;
const nameOf = (path: string): string => path.replace(/^.*-/, '').replace(/\.elf$/, '');

for (const kernel of ['rv-spaces', 'x86-spaces'])
  t.test(`${kernel}: each stack is its program's`, async (t) => {
    const { elf, debug } = await opened(kernel);
    const programs = [await opened(`${kernel}-alpha`), await opened(`${kernel}-beta`)];
    const [alpha] = programs.map((program) => program.elf);
    const qemu = frozenGuest(t, kernel);
    const session = await connect(`unix:${qemu.socket}`, { waitMs: 5000 });
    const arch = architectureNamed(guest(kernel).arch) as Architecture;
    await arch.prepare();
    const sources = new SourceFrames(elf, debug);
    const others = new OtherPrograms(programs, arch);
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
  t.match(stdout, /^hart \S+ {2}CPU#0 \[running\], in rv-spaces-alpha\n {2}#0 {2}0x80201448 /);
  t.match(stdout, / alpha::descend at .*\n.* alpha::main at .*\n.* _start\n {2}end: the program's entry point\n/);
});

t.test('what --elf cannot be', async (t) => {
  const said = async (t: Test, ...args: string[]): Promise<unknown> => {
    const { status, stdout } = await rsptrace(...args, '--json').ended;
    t.not(status, 0);
    return (JSON.parse(stdout) as { readonly error: unknown }).error;
  };
  const [kernel, alpha] = [elfPath('rv-spaces'), elfPath('rv-spaces-alpha')];
  const bt = ['bt', '--remote', ':1'];
  t.match(await said(t, ...bt, '--elf', alpha, '--elf', alpha, kernel), { code: 'USAGE', message: /given twice/ });
  t.match(await said(t, ...bt, '--elf', kernel, kernel), { code: 'USAGE', message: /given twice/ });
  t.match(await said(t, ...bt, '--elf', elfPath('x86-spaces-alpha'), kernel), {
    code: 'ARCH_MISMATCH',
    message: /x86-spaces-alpha.elf is for x86_64, and .*rv-spaces.elf for riscv64/,
  });
  t.match(await said(t, 'bt', '--pid', '1', '--elf', alpha, kernel), { code: 'USAGE', message: /of a machine/ });
  t.match(await said(t, ...bt, '--elf', `${alpha}.not`, kernel), { code: 'ELF_UNREADABLE' });
  t.match(await said(t, ...bt, '--elf', alpha), { code: 'USAGE', message: /no ELF is given/ });
});
