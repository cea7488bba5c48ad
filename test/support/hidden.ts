import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { startQemu } from '../../src/api/qemu.js';
import { type Architecture, architectureOf, architectures } from '../../src/arch/index.js';
import { isRefusal } from '../../src/base/errors.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { HiddenMemory, type HiddenMemoryPlan, planHiddenMemory } from '../../src/scratch/index.js';
import { ResetVector } from '../../src/target/index.js';
import { scratchFolder } from './command.js';

/** A machine with RAM that its guest does not know of, standing where `reserve` leaves it. */
export interface HiddenMachine {
  readonly plan: HiddenMemoryPlan;
  readonly session: Session;
  readonly hidden: HiddenMemory;
  readonly vector: ResetVector;
  readonly ended: Promise<{ readonly status: number | null }>;
  console(): string;
}

export async function hiddenMachine(t: Test, command: readonly string[]): Promise<HiddenMachine> {
  const plan = await planHiddenMemory(command);
  if (isRefusal(plan)) throw new Error(plan.refused);
  const texts: Buffer[] = [];
  const qemu = await startQemu(plan.command, (text) => texts.push(Buffer.from(text)), {});
  // Before tap gives the test up, which would leave QEMU behind.
  const killer = setTimeout(() => qemu[Symbol.dispose](), 300_000);
  const session = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
  t.teardown(async () => {
    session.close();
    qemu[Symbol.dispose]();
    await qemu.ended;
    clearTimeout(killer);
    plan[Symbol.dispose]();
  });
  const arch = architectures().find(({ qemuMachines }) => qemuMachines?.includes(plan.machine.name));
  const vector = arch && (await ResetVector.find(session, arch));
  if (vector === undefined) throw new Error('the machine does not stand at its reset vector');
  const hidden = await HiddenMemory.reserve(session, plan);
  if (isRefusal(hidden)) throw new Error(hidden.refused);
  return { plan, session, hidden, vector, ended: qemu.ended, console: () => Buffer.concat(texts).toString('latin1') };
}

/** What a machine prints by itself, whole: a pipe that is full when QEMU ends would lose the rest. */
export async function plainRun(t: Test, command: readonly string[], limitMs = 300_000): Promise<string> {
  const path = join(scratchFolder(t), 'console');
  const file = openSync(path, 'w');
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: ['ignore', file, 'ignore'] });
  const killer = setTimeout(() => child.kill('SIGKILL'), limitMs);
  await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(killer);
  closeSync(file);
  return readFileSync(path, 'latin1');
}

export async function programOf(path: string): Promise<{ readonly elf: ElfFile; readonly arch: Architecture }> {
  const elf = await ElfFile.open(path);
  const arch = architectureOf(elf.machine);
  if (arch === undefined) throw new Error(`${path}: e_machine ${elf.machine}`);
  return { elf, arch };
}
