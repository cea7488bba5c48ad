// Microseconds to walk a stack of 16 frames from memory that has been read already, by each unwinder, warm and the first time; and the
// round trips that a stack of 8 frames costs at a stop. The stacks are those of an unoptimised guest in deep7, 19 frames deep.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { architectureOf } from '../dist/arch/index.js';
import { DebugInfo } from '../dist/dwarf/index.js';
import { ElfFile } from '../dist/elf/index.js';
import { connect } from '../dist/rsp/index.js';
import { SourceFrames, Stacks, StackWindow } from '../dist/target/unwind/index.js';
import { findGuest, unpack } from '../test/qemu/guests/store.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    guest: { type: 'string', multiple: true, default: ['rv-o0', 'x86-o0'] },
  },
});
const rounds = Number(values.rounds);
const walks = 2000;
const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
const folder = mkdtempSync(join(tmpdir(), 'rsptrace-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

for (const name of values.guest) {
  const guest = findGuest(name);
  const path = unpack(guest);
  const elf = await ElfFile.open(path);
  const arch = architectureOf(elf.machine);
  await arch.prepare();
  const socket = join(folder, name);
  const [program, ...args] = guest.qemu.map((arg) => (arg === '{elf}' ? path : arg));
  const chardev = `socket,path=${socket},server=on,wait=off,id=g`;
  const qemu = spawn(program, [...args, '-S', '-chardev', chardev, '-gdb', 'chardev:g'], { stdio: 'ignore' });
  const session = await connect(`unix:${socket}`, { waitMs: 5000 });
  const [{ address }] = elf.symbols.named('deep7');
  await session.insertBreakpoint({ type: 0, address, kind: arch.name === 'riscv64' ? 2 : 1 });
  await session.resume();

  const stacks = new Stacks(elf, arch);
  let trips = 1;
  const batch = session.batch();
  const reply = batch.readRegisters(stacks.specialRegisters);
  await batch.send();
  const registers = reply.value;
  const memory = session.memory();
  const counted = {
    read: (at, length) => {
      trips++;
      return memory.read(at, length);
    },
  };
  const eight = await stacks.unwind(registers, counted, { depth: 8 });
  const first = stacks.firstBytes(registers);
  const window = new StackWindow();
  window.add(first.address, await memory.read(first.address, first.length));
  session.close();
  qemu.kill('SIGKILL');

  console.log(`${name}: ${eight.frames.length} frames cost ${trips} round trips, the registers' one among them`);
  for (const unwinder of ['auto', 'cfi', 'prologue']) {
    const cold = [];
    const warm = [];
    for (let round = 0; round < rounds; round++) {
      const fresh = new Stacks(elf, arch);
      const began = performance.now();
      const { frames } = fresh.walk(registers, window, { unwinder, depth: 16 });
      cold.push((performance.now() - began) * 1000);
      if (frames.length !== 16) throw new Error(`${unwinder} found ${frames.length} frames`);
      const again = performance.now();
      for (let i = 0; i < walks; i++) fresh.walk(registers, window, { unwinder, depth: 16 });
      warm.push(((performance.now() - again) * 1000) / walks);
    }
    const text = [median(warm), Math.min(...warm), Math.max(...warm)].map((us) => us.toFixed(1));
    console.log(
      `  ${unwinder.padEnd(9)} 16 frames ${text[0].padStart(6)} us warm   (${text[1]} .. ${text[2]}), the first time ${median(cold).toFixed(0)} us`,
    );
  }
  const debug = DebugInfo.load(elf);
  const { frames } = stacks.walk(registers, window, { depth: 16 });
  const began = performance.now();
  const sources = new SourceFrames(elf, debug);
  for (const frame of frames) sources.of(frame);
  console.log(`  names and lines of 16 frames the first time: ${(performance.now() - began).toFixed(1)} ms`);
}
