import { hex } from '../base/addr.js';
import {
  engineSentence,
  extraLines,
  hurdleLines,
  isOfTarget,
  reasonLines,
  summarizeEngines,
} from '../engines/index.js';
import { isProcess, type StubName } from '../rsp/index.js';
import { hartName } from '../target/index.js';
import { clipEnd, plural, textLines } from '../text/index.js';
import { hartWord } from '../trace/index.js';
import type { Diagnosis, HartReport } from './examine.js';
import type { ProgramReport } from './program.js';
import { placeName } from './report-json.js';
import type { RoundTrip } from './stub.js';

const titles: Readonly<Record<StubName, string>> = {
  'qemu-system': 'QEMU',
  'qemu-user': 'QEMU in user mode',
  gdbserver: 'gdbserver',
  'lldb-server': 'lldb-server',
  valgrind: "valgrind's gdbserver",
  rr: 'rr',
  openocd: 'OpenOCD',
  renode: 'Renode',
  unknown: 'a stub that does not say what it is',
};

/** Harts that the page shows; the JSON has all. */
const shownHarts = 8;
const titleWidth = 10;

/** One page for the user. `probes`: the table of engines, if it is wanted. */
export function diagnosisText(found: Diagnosis): string {
  const sections: [string, readonly string[]][] = [
    ['stub', stubLines(found)],
    ['target', targetLines(found)],
    ['clocks', clockLines(found)],
    ['times', timeLines(found)],
    ['hits', [hitLine(found)]],
    ...(found.program ? programSections(found.program) : []),
    ['advice', found.advice.length === 0 ? ['nothing to change'] : found.advice.map(({ text }) => `- ${text}`)],
  ];
  return textLines(
    sections.flatMap(([title, lines]) =>
      lines.map((line, i) => `${(i === 0 ? title : '').padEnd(titleWidth)} ${line}`.trimEnd()),
    ),
  );
}

function stubLines({ server, session, abilities, hardware }: Diagnosis): string[] {
  const { features } = session;
  const name = titles[server.name];
  const version =
    server.version === undefined ? '' : server.version.startsWith(name) ? server.version : `${name} ${server.version}`;
  const flags = [
    `packets of ${features.packetSize} bytes`,
    features.noAck ? 'no acknowledgements' : 'acknowledged',
    ...(features.batches ? [] : ['one at a time']),
  ];
  const count = hardware === undefined ? '' : ` (${hardware} in hardware)`;
  const map = abilities.memoryMap;
  return [
    `${version === '' ? `${name}${server.name === 'unknown' ? '' : ', version unknown'}` : version}${server.accelerator === 'kvm' ? ', KVM' : ''}`,
    flags.join(', '),
    `vCont ${features.vCont.size === 0 ? 'not known' : [...features.vCont].join(' ')}; breakpoint types (Z) ${abilities.breakpoints.join(' ') || 'none'}${count}`,
    `registers by ${[features.registerBlock ? 'g' : '', features.singleRegister ? 'p' : ''].join(' ').trim()}; threads by ${abilities.threads}; memory map: ${
      map === undefined
        ? 'none'
        : map.map(({ type, start, length }) => `${type} ${hex(start)}+${hex(length)}`).join(', ')
    }`,
    `qSupported: ${clipEnd([...features.supported].map(([key, value]) => (/^[+?-]$/.test(value) ? `${key}${value}` : `${key}=${value}`)).join(';'), 160)}`,
  ];
}

function targetLines({ session, harts, hartCount, fresh, elf }: Diagnosis): string[] {
  const { target } = session;
  const process = isProcess(session.features);
  const state = fresh ? ', never started' : '';
  const more = hartCount > shownHarts ? [`... and ${hartCount - shownHarts} more`] : [];
  const first = harts[0]?.registers ?? [];
  return [
    `${target.architecture ?? 'architecture unknown'}, ${target.registers.size} registers (${target.source}), ${plural(hartCount, hartWord({ isProcess: process }))}${state}`,
    ...harts
      .slice(0, shownHarts)
      .map((hart) => hartLine(hart, process, hart.pc === undefined ? undefined : placeName(elf, hart.pc))),
    ...more,
    ...first.map(({ name, value, meaning }) => `  ${name.padEnd(8)} ${hex(value)}  ${meaning}`.trimEnd()),
  ];
}

function hartLine(hart: HartReport, process: boolean, place: string | undefined): string {
  const { id, name, pc, mode, paging } = hart;
  const root = paging?.root === undefined ? '' : `, root ${hex(paging.root)}`;
  const sees = paging === undefined ? '' : `, paging ${paging.scheme}${root}`;
  // QEMU adds what a hart does, which is always "stopped" now.
  const called = process ? hartName(hart, true) : name?.replace(/\s*\[.*\]$/, '') || id;
  return `${called}: pc ${pc === undefined ? '?' : hex(pc)}${place === undefined ? '' : ` ${place}`}${mode === undefined ? '' : `, ${mode}`}${sees}`;
}

function clockLines({ clocks }: Diagnosis): string[] {
  if (clocks.length === 0) return ['not known for this architecture'];
  return clocks.map(
    ({ name, resolutionNs, guest, chosen }) =>
      `${name}, ${Number(resolutionNs.toFixed(1))} ns a tick${guest ? '' : ", the host's time while the guest runs"}${chosen ? '  <- would be used' : ''}`,
  );
}

function timeLines({ times }: Diagnosis): string[] {
  const line = (what: string, { medianUs, p90Us, samples }: RoundTrip): string =>
    `${what.padEnd(13)} median ${us(medianUs)}, p90 ${us(p90Us)} (of ${samples})`;
  return [
    line('a round trip', times.smallest),
    line('all registers', times.registers),
    times.page ? line('4 KiB', times.page) : '4 KiB: no page could be read',
  ];
}

function hitLine({ hits, elf }: Diagnosis): string {
  const { rate, why } = hits;
  if (rate === undefined) return `not measured: ${why}`;
  const name = placeName(elf, rate.address);
  return `${Math.round(rate.perSecond)} a second at ${hex(rate.address)}${name === undefined ? '' : ` ${name}`} (${rate.hits} of them; the guest itself had at most ${us(rate.guestUs)} between two)`;
}

function programSections(program: ProgramReport): [string, string[]][] {
  const { problem, probes, scratch, noProbes } = program;
  const bias = program.loadBias === 0n ? '' : `, loaded ${hex(program.loadBias)} above its own addresses`;
  const waits = program.absent === 0 ? '' : `, ${program.absent} not loaded yet`;
  const matches =
    problem !== undefined && !problem.code.startsWith('SCRATCH')
      ? `is NOT what runs: ${problem.message}`
      : program.compared === 0
        ? 'has no code that could be compared'
        : program.absent === program.compared
          ? `may run there later: ${plural(program.compared, 'place')}, whose code is not loaded yet${bias}`
          : program.elsewhere > 0
            ? `is not what runs just now: other code is at ${program.elsewhere} of ${program.compared} places, but it may run in another address space`
            : `is what runs: ${program.same.length} of ${program.compared} places have its code${waits}${bias}`;
  const about = [
    program.debugInfo ? 'debug info' : 'no debug info',
    program.frameInfo ? 'call frame information' : 'no call frame information',
    `build id ${program.buildId ?? 'none'}`,
  ];
  const lines: string[] = [];
  if (problem && probes.length === 0) lines.push('not looked at');
  else if (noProbes) lines.push(`none: ${noProbes.message}`);
  else {
    const summary = summarizeEngines(probes);
    lines.push(
      engineSentence(summary),
      ...[...reasonLines(summary), ...extraLines(summary)].map((line) => `  ${line}`),
    );
    for (const { table } of program.previews) lines.push(...(table?.trimEnd().split('\n') ?? []));
    if (scratch) {
      lines.push(
        'refused' in scratch
          ? `memory for trampolines: ${scratch.later ? 'not yet' : 'none'}: ${scratch.refused}`
          : `memory for trampolines: ${scratch.source}, ${scratch.ringBytes} bytes for the ring`,
      );
    }
  }
  return [
    ['elf', [`${program.path} ${matches}`, about.join(', ')]],
    ['probes', lines],
    ['hurdles', hurdleLines(program.hurdles.filter(isOfTarget))],
  ];
}

function us(value: number): string {
  return value < 10_000 ? `${value.toFixed(value < 100 ? 1 : 0)} us` : `${(value / 1000).toFixed(1)} ms`;
}
