// What a guest takes longer for its work when functions are armed that it never calls: QEMU with the same memory, from the moment at which all are
// armed to QEMU's end, against the same without any. One function that is called once, early, is armed besides: at its call the trampolines are
// installed, and without any the guest is stopped there once.
import { planEngines } from '../../dist/engines/index.js';
import { parseProbe } from '../../dist/probes/index.js';
import { enginePlan, prepare, record } from '../../dist/record/index.js';
import { median } from '../bench-lib.mjs';
import { labGuest, row, rsptrace } from './common.mjs';
import { sinkOf, whenInstalled, withQemu } from './hidden.mjs';

/** Runs in a round: one of either takes a second or two. */
const pairs = 2;

/** Which functions of the guest are called once, and which never, told by a short run of the same program. */
async function functionsOf(name, probe) {
  const { elf, command } = await labGuest(name.replace(/-long$/, ''), probe);
  const { counts } = rsptrace(['run'], '-p', 'count:**', elf, '--', ...command);
  const plain = counts.filter(({ function: path }) => /^[\w:]+$/.test(path));
  const alone = plain.filter(({ function: path }) => plain.filter((one) => one.function === path).length === 1);
  const named = (calls) => alone.filter((one) => one.calls === calls).map((one) => one.function);
  return { once: named(1), never: named(0) };
}

/** The probes of functions that a program was asked for. */
const functionsIn = ({ kinds }) => kinds.flatMap(({ found }) => found.functions?.probes ?? []);

/** Runs the guest until it has called one of these functions for the first time. */
async function firstOf(session, probes, arch) {
  const breakpoints = probes.map(({ address }) => ({ type: 0, address, kind: arch === 'riscv64' ? 2 : 1 }));
  const insert = session.batch();
  for (const breakpoint of breakpoints) insert.insertBreakpoint(breakpoint);
  await insert.send();
  await session.resume();
  const batch = session.batch();
  const pc = batch.readRegister(arch === 'riscv64' ? 'pc' : 'rip');
  for (const breakpoint of breakpoints) batch.removeBreakpoint(breakpoint);
  await batch.send();
  return probes.find(({ address }) => address === pc.value);
}

export async function idle({ guests, probe, rounds }) {
  for (const name of guests) {
    const { elf, command } = await labGuest(name, probe);
    const { once, never } = await functionsOf(name, probe);
    const specs = (names) => names.map((path) => parseProbe(`fn:${path}`));
    const early = await prepare(elf, specs(once));
    const arch = early.arch.name;
    const first = await withQemu(command, ({ session }) => firstOf(session, functionsIn(early), arch));
    const alone = await prepare(elf, specs([first.ref.name]));
    const possible = await prepare(elf, specs([first.ref.name, ...never]));
    const plan = enginePlan(possible, 'target', undefined, false);
    const { refused } = planEngines(plan);
    const all = await prepare(elf, specs(plan.plans.flatMap(({ name }, index) => (refused.has(index) ? [] : [name]))));
    const runs = { untraced: [], armed: [] };
    let installed = 0;
    const untraced = () =>
      withQemu(command, async ({ session, ended }) => {
        await firstOf(session, functionsIn(alone), arch);
        const began = performance.now();
        session.resume().catch(() => {});
        await ended;
        return performance.now() - began;
      });
    const armed = () =>
      withQemu(command, async ({ session, scratch, ended }) => {
        let began;
        const logger = whenInstalled(({ probes }) => {
          began = performance.now();
          installed = probes;
        });
        const recording = record({
          session,
          program: all,
          sink: sinkOf(),
          engine: 'target',
          functions: { values: false },
          scratch,
          logger,
        });
        await ended;
        const ms = performance.now() - began;
        if (began === undefined) throw new Error('no trampoline was installed');
        const { records } = await recording;
        if (records > 2) throw new Error(`${records} events of functions that are not called`);
        return ms;
      });
    for (let round = 0; round < rounds * pairs; round++) {
      runs.untraced.push(await untraced());
      runs.armed.push(await armed());
    }
    console.log(`idle, ${name}: ${installed} functions armed, ${first.ref.name} called once, the others never`);
    row('untraced', runs.untraced, 'ms');
    const percent = (of) => `${((of(runs.armed) / of(runs.untraced) - 1) * 100).toFixed(1)} %`;
    const least = (list) => Math.min(...list);
    row('armed', runs.armed, 'ms', `${percent(median)} longer by the medians, ${percent(least)} by the least`);
  }
}
