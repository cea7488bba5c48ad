// Memory that the user or the program sets aside, the room behind the text, and the proof that nobody else writes to it.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { Architecture } from '../../src/arch/index.js';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { isRefusal, type Refusal, RsptraceError } from '../../src/base/errors.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect, type Session } from '../../src/rsp/index.js';
import {
  beginPrivacyProof,
  findScratch,
  parseScratch,
  reservedScratch,
  type Scratch,
  sectionMemory,
  symbolMemory,
  textSlack,
} from '../../src/scratch/index.js';
import { elfPath, guest, parseLab } from '../qemu/guests/guests.js';
import { frozenGuest, type Running, scratchFolder, start } from '../support/command.js';
import { writeElf } from '../support/elf-writer.js';
import { programOf } from '../support/hidden.js';
import { usually } from '../support/long.js';
import { pagingKernel } from '../support/tiny-kernels.js';

const MIB = 2 ** 20;

/** The proof, with the target running for so long in between. */
async function provePrivate(scratch: Scratch, session: Session, home?: Addr): Promise<string | undefined> {
  const proof = await beginPrivacyProof(scratch, session, undefined);
  const timer = setTimeout(() => void session.interrupt().catch(() => {}), 100);
  let stop = await session.resume();
  clearTimeout(timer);
  if (home !== undefined) {
    // It may stand in the firmware, from where the kernel's memory is not seen.
    const breakpoint = { type: 1, address: home, kind: 1 } as const;
    await session.insertBreakpoint(breakpoint);
    stop = await session.resume();
    await session.removeBreakpoint(breakpoint);
  }
  return stop.kind === 'signal' ? proof.end() : undefined;
}

t.test('--scratch ADDR,SIZE', async (t) => {
  t.match(parseScratch('0x87000000,1M'), { address: 0x8700_0000n, size: MIB });
  t.match(parseScratch('0xffffffff80000000,0x2000'), { address: 0xffff_ffff_8000_0000n, size: 0x2000 });
  t.match(parseScratch('4096,64k'), { address: 4096n, size: 65536 });
  for (const text of [
    '',
    '1',
    '0x1000',
    ',1',
    '0x1000,',
    '0x1000,1T',
    '-1,4096',
    '0x1000, 1M',
    '0xffffffffffffffff,4096',
  ]) {
    t.throws(() => parseScratch(text), { code: 'SCRATCH_SYNTAX' }, text);
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        parseScratch(text);
      } catch (error) {
        if (!(error instanceof RsptraceError)) throw error;
      }
    }),
    { seed: 5 },
  );
});

t.test('a symbol, and a section', async (t) => {
  const { elf } = await programOf(elfPath('rv-o2'));
  const listed = execFileSync('readelf', ['-sW', elfPath('rv-o2')], { encoding: 'utf8', maxBuffer: 64 * MIB });
  const arena =
    listed
      .split('\n')
      .find((line) => / OBJECT .*5ARENA$/.test(line))
      ?.trim()
      .split(/\s+/) ?? [];
  const found = symbolMemory(elf, arena[7] ?? '');
  t.equal(found.address, BigInt(`0x${arena[1]}`));
  t.equal(found.size, Number(arena[2]));
  t.match(found.name, /^the symbol .*ARENA$/);
  t.throws(() => symbolMemory(elf, 'nobody'), { code: 'SCRATCH_NO_SYMBOL', message: /has no symbol nobody/ });
  t.throws(() => symbolMemory(elf, '_start'), { code: 'SCRATCH_NO_SYMBOL', message: /none that is data/ });
  t.equal(sectionMemory(elf), undefined);
  const bytes = new Uint8Array(8192);
  const own = ElfFile.parse(writeElf({ sections: [{ name: '.rsptrace', bytes, address: 0x8040_0000n }] }), 'own');
  t.same(sectionMemory(own), { owned: true, name: 'the section .rsptrace', address: 0x8040_0000n, size: 8192 });
  const unloaded = ElfFile.parse(writeElf({ sections: [{ name: '.rsptrace', bytes }] }), 'own');
  t.equal(sectionMemory(unloaded), undefined);
});

interface Stopped {
  readonly qemu: Running;
  readonly session: Session;
  readonly arch: Architecture;
  readonly elf: ElfFile;
}

/** A guest that stands in `poll_task`. */
async function stopped(t: Test, name: string): Promise<Stopped> {
  const qemu = frozenGuest(t, name);
  const session = await connect(qemu.socket, { waitMs: 60_000 });
  t.teardown(() => session.close());
  const { elf, arch } = await programOf(elfPath(name));
  const address = [...elf.symbols].find((symbol) => /9poll_task/.test(symbol.name))?.address ?? addr(0);
  const breakpoint = { type: 1, address, kind: 1 } as const;
  await session.insertBreakpoint(breakpoint);
  await session.resume();
  await session.removeBreakpoint(breakpoint);
  return { qemu, session, arch, elf };
}

function scratchOf(made: Scratch | Refusal): Scratch {
  if (isRefusal(made)) throw new Error(made.refused);
  return made;
}

const guests = [
  ['rv-o2-long', 0x8700_0000],
  ['x86-o2-long', 0x700_0000],
] as const;
// Pages are asked for on x86_64 alone.
for (const [name, free] of usually(guests, ([name]) => name === 'x86-o2-long')) {
  t.test(`${name}: RAM that is free is proved to be, and put back`, async (t) => {
    const { qemu, session, arch } = await stopped(t, name);
    const memory = session.memory();
    const before = Buffer.alloc(MIB, 'what was there ');
    t.ok(await memory.write(addr(free), before));
    const given = { ...parseScratch(`${free - 100},${MIB + 300}`) };
    const options = { pages: arch.name === 'x86_64', slack: undefined };
    const scratch = scratchOf(await reservedScratch(session, arch, given, options));
    t.match(scratch.source, /^--scratch \(0x[0-9a-f]+, 1048876 bytes\)$/);
    t.match(scratch.code, { address: addr(free), size: MIB / 8, physical: addr(free) });
    t.match(scratch.data, { address: addr(free + MIB / 8 + 4096), size: MIB - MIB / 8 - 2 * 4096 });
    for (const [codeSize, size, why] of [
      [MIB / 4 + 1, MIB / 4 + 4096, 'as much code as there may be, in whole pages'],
      [MIB, MIB / 2, 'half of it at most'],
      [4096, MIB / 8, 'no less than without'],
    ] as const) {
      const divided = await reservedScratch(session, arch, given, { ...options, codeSize });
      t.match(
        divided,
        { code: { size }, data: { address: addr(free + size + 4096), size: MIB - size - 2 * 4096 } },
        why,
      );
      await scratchOf(divided).release();
    }
    t.equal(await provePrivate(scratch, session), undefined);
    t.equal(await scratch.verifyGuards(), undefined);
    await memory.write(addOffset(scratch.data.address, scratch.data.size), Buffer.of(1));
    t.match(await scratch.verifyGuards(), /somebody wrote to the guard page behind the data/);
    await memory.write(scratch.code.address, Buffer.alloc(5000, 7));
    await scratch.release();
    t.ok(before.equals((await memory.read(addr(free), MIB)) ?? Buffer.alloc(0)), 'byte for byte what it was');
    await session.detach();
    t.equal(parseLab((await qemu.ended).stdout).checksum, guest(name).checksum);
  });
}

for (const name of ['rv-o2', 'x86-o2']) {
  t.test(`${name}: the room behind the text`, async (t) => {
    const { qemu, session, arch, elf } = await stopped(t, name);
    const memory = session.memory();
    const slack = await textSlack(session, arch, elf);
    if (isRefusal(slack)) throw new Error(slack.refused);
    const headers = execFileSync('readelf', ['-lW', elfPath(name)], { encoding: 'utf8' });
    const [, start = '', size = ''] = /LOAD +0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) R E/.exec(headers) ?? [];
    const end = Number(start) + Number(size);
    t.ok(Number(slack.address) >= end && Number(slack.address) < end + 16, 'where the text ends');
    t.equal((Number(slack.address) + slack.size) % 4096, 0);
    t.equal(slack.physical, slack.address);

    await memory.write(slack.address, Buffer.of(1));
    t.match(await textSlack(session, arch, elf), { refused: /is not empty in the target/ });
    await memory.write(slack.address, Buffer.of(0));
    const sections = execFileSync('readelf', ['-SW', elfPath(name)], { encoding: 'utf8' });
    for (const section of ['.text', '.rodata']) {
      const at = new RegExp(`${section.replace('.', '\\.')} +PROGBITS +(\\w+)`).exec(sections)?.[1] ?? '';
      const given = parseScratch(`0x${at},64K`);
      const message = `--scratch cannot be used: the program's ${section} lies there`;
      await t.rejects(findScratch({ session, arch, elf, text: addr(0), given }), { code: 'SCRATCH_UNUSABLE', message });
    }
    await session.detach();
    t.equal(parseLab((await qemu.ended).stdout).checksum, guest(name).checksum);
  });
}

for (const [arch, levels] of [
  ['riscv64', 3],
  ['x86_64', 4],
] as const) {
  t.test(`${arch} with paging: only what is mapped as it must be`, async (t) => {
    const kernel = pagingKernel(t, arch, levels);
    const { elf, arch: architecture } = await programOf(kernel.elf);
    const socket = join(scratchFolder(t), 'gdb');
    const [program = '', ...args] = kernel.command;
    const qemu = start(program, [...args, '-S', '-gdb', `unix:${socket},server=on,wait=off`]);
    t.teardown(() => void qemu.process.kill('SIGKILL'));
    await using session = await connect(socket, { waitMs: 60_000 });
    const symbol = (name: string): Addr => elf.symbols.named(name)[0]?.address ?? addr(0);
    const stack = addOffset(symbol('stack'), -4096);
    const options = { pages: true, slack: undefined };
    const given = (address: Addr, size: number): ReturnType<typeof reservedScratch> =>
      reservedScratch(session, architecture, { owned: true, name: 'it', address, size }, options);
    t.match(await given(stack, 4096), { refused: /before the kernel has turned its paging on/, later: true });
    const breakpoint = { type: 1, address: symbol('settled'), kind: 1 } as const;
    await session.insertBreakpoint(breakpoint);
    await session.resume();
    t.match(await given(addr(0x8700_0000), 8192), { refused: /0x87000000 is not mapped/, later: true });
    t.match(await given(symbol('_start'), 8192), { refused: /not writable for the kernel/ });
    t.match(await given(addOffset(stack, -4096), 8192), { refused: /not executable for the kernel/ });
    t.match(await given(stack, 100), { refused: /holds no whole page/ });
    t.match(await given(stack, 2 ** 30), { refused: /larger than 256 MiB/ });

    // Its counter, alone on a page, and a loop that does not end.
    await session.removeBreakpoint(breakpoint);
    const hart = (await session.harts())[0]?.id ?? '';
    await session.resume({ kind: 'step', hart });
    const loop = session.batch();
    loop.writeRegister(arch === 'riscv64' ? 's4' : 'r12', 0x7fff_ffffn);
    await loop.send();
    const slack = { address: addOffset(symbol('_start'), 2048), size: 64 };
    const before = await session.memory().read(slack.address, slack.size);
    const counter = symbol('counter');
    t.match(await given(counter, 4096), { refused: /need a page each/, later: false });
    const own = { owned: true, name: 'its counter', address: counter, size: 4096 };
    const scratch = scratchOf(await reservedScratch(session, architecture, own, { pages: true, slack }));
    t.match(scratch.source, /code among that of the program$/);
    t.same(scratch.code, slack);
    const offset = arch === 'riscv64' ? 0xffff_ffff_0000_0000n : 0xffff_ffff_8000_0000n;
    t.match(scratch.data, { address: counter, size: 4096, physical: counter - offset });
    t.match(
      await provePrivate(scratch, session, symbol('work')),
      new RegExp(`^somebody else writes to memory at 0x${counter.toString(16)}$`),
    );
    t.same(await session.memory().read(slack.address, slack.size), before, 'what was there is there again');
  });
}

t.test('memory that is none', async (t) => {
  const { session, arch } = await stopped(t, 'rv-o2-long');
  const options = { pages: false, slack: undefined };
  // QEMU takes writes to where nothing is, and answers reads there with an error, by physical address with zeros.
  const nowhere = { owned: true, name: 'it', address: addr(0x2_0000_0000n), size: 8192 };
  const made = scratchOf(await reservedScratch(session, arch, nowhere, options));
  t.equal(await provePrivate(made, session), 'memory at 0x200000000 does not keep what is written');
  const large = { ...nowhere, size: 65536 };
  t.match(await reservedScratch(session, arch, large, options), {
    refused: /cannot be used: memory at 0x20000\w+ does not keep what is written/,
  });
});
