import { basename, resolve } from 'node:path';
import { abortAtSignal, linesOf, onlyStops, type Subject, startMachine } from '../api/index.js';
import { RsptraceError } from '../base/errors.js';
import { jsonFacts } from '../base/json-facts.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { type ProfileFacts, type ProfileOptions, profile, profileByPerf, whyNoPerf } from '../profile/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { isLinuxProgram } from '../target/index.js';
import type { OtherProgram } from '../target/stacks/index.js';
import { plural } from '../text/index.js';
import {
  CallTree,
  formatOf,
  hartWord,
  sampleRows,
  sampleTable,
  type TraceFacts,
  type TraceSink,
  tee,
  timeText,
} from '../trace/index.js';
import type { AtTarget } from './at-target.js';
import { ExitCode, note, showOutput, thoseOf } from './failure.js';
import { endProgram, processNamed, programNamed, underGdbserver } from './local-process.js';
import { loadedThere, lookAt, programOf, type ReadProgram, readProgram } from './look-at.js';
import { sayWithoutWire, wireRecorder } from './open-output.js';
import { openPrograms } from './open-programs.js';
import { openSamples } from './open-samples.js';
import { debugFilesOf } from './options/common.js';
import { type ProfileArguments, periodOf } from './options/target.js';
import { printed, tableOptions } from './terminal.js';

type Chosen = ProfileArguments & { readonly elf: string };

/** What is read before the target is touched. */
interface Prepared extends ReadProgram<Chosen> {
  readonly known: DebugInfo | undefined;
  readonly programs: readonly OtherProgram[];
  readonly tree: CallTree;
  readonly sink: TraceSink;
  /** Why perf does not take the samples, where it would have. */
  readonly noPerf?: string;
}

interface Sampled {
  /** The exit status. */
  readonly status: number;
  readonly end: ProfileFacts['end'];
}

/** Without --duration: longer than anybody waits, in milliseconds. */
const forever = 2 ** 31 - 1;
/** Periods of so many times what was asked for are said. */
const LATE = 1.5;
/** A process that stands for more of the time, in percent, is no more as it was. */
const mostStood = 10;

/** `rsptrace profile`: what the target spends its time with, by samples of its stacks. Gives the exit status. */
export async function profileTarget(given: ProfileArguments): Promise<number> {
  const read = await readProgram({ ...given, elf: fileOf(given) });
  const { args, logger, linked } = read;
  const target = targetOf(args, linked);
  const known = linesOf(linked, logger);
  const programs = await openPrograms(args, linked, logger);
  if (args.async && known === undefined) throw noDebugInfo(args.elf);
  const tree = new CallTree();
  const sink = tee([tree, ...(args.output === undefined ? [] : [openSamples(args.output, args.force, 'any')])]);
  try {
    return await target({ ...read, known, programs, tree, sink });
  } finally {
    sink.end();
  }
}

/** The file of the program, as a shell finds it. */
function fileOf(args: ProfileArguments): string {
  const { elf, remote } = args;
  return elf === undefined || remote !== undefined ? programOf(args) : programNamed(elf);
}

function targetOf(args: Chosen, linked: ElfFile): (prepared: Prepared) => Promise<number> {
  const { command, pid } = args;
  if (args.remote !== undefined) return ofStub;
  if (pid !== undefined) {
    const subject = { pid: processNamed(pid) };
    return async (prepared) => {
      const chosen = await withSampler(prepared, subject.pid);
      return chosen.args.sampler === 'perf' ? ofRunning(chosen, subject.pid) : ofProcess(chosen, subject);
    };
  }
  const isMachine = /^qemu-system-/.test(basename(command[0] ?? ''));
  if (!isMachine && isLinuxProgram(linked))
    return (prepared) => ofProcess(prepared, { command: [resolve(args.elf), ...command] });
  if (command.length > 0) return ofMachine;
  throw new RsptraceError('USAGE', `nothing says where ${args.elf} runs, and it is no program of Linux`, {
    hint: 'give --remote ADDR, or a QEMU to start behind --',
  });
}

/** perf stops nothing: it takes the samples that it can take, unless the command line says what does. */
async function withSampler(prepared: Prepared, pid: number): Promise<Prepared> {
  const { args, arch } = prepared;
  if (args.sampler !== undefined || args.idle) return prepared;
  const refused = await whyNoPerf(pid, arch);
  if (refused === undefined) return { ...prepared, args: { ...args, sampler: 'perf' } };
  if (!args.json) note(`the process is stopped for each sample, because ${refused.message}`, refused.hint);
  return { ...prepared, noPerf: refused.message };
}

async function ofStub(prepared: Prepared): Promise<number> {
  return (await lookAt(prepared, (target) => ofTarget(prepared, target))).status;
}

/** A process of this machine, under a gdbserver that is started at the last moment and taken away. */
async function ofProcess(prepared: Prepared, subject: Subject): Promise<number> {
  const { result, server } = await underGdbserver(subject, prepared, (target) => ofTarget(prepared, target));
  if ('command' in subject && result.end !== 'target-ended') await endProgram(server, result.end === 'interrupted');
  return result.status;
}

/** A process that is not stopped. */
async function ofRunning(prepared: Prepared, pid: number): Promise<number> {
  sayWithoutWire(prepared.args);
  const facts = await sampledBy(prepared, { session: pid, elf: prepared.linked }, profileByPerf);
  finish(prepared, facts, 'perf');
  return ExitCode.recorded;
}

async function ofTarget(prepared: Prepared, { session, recordingBegins }: AtTarget): Promise<Sampled> {
  const elf = await loadedThere(session, prepared);
  if (isProcess(session.features)) {
    await session.findLocalProcess();
    const why = await session.whyUninterruptible();
    if (why !== undefined) throw notInterruptible(why);
  }
  recordingBegins();
  return await sampled(prepared, session, elf, true);
}

async function ofMachine(prepared: Prepared): Promise<number> {
  const { args, arch, linked, logger } = prepared;
  using wire = wireRecorder(args, logger, true);
  const shown = args.json ? process.stderr : process.stdout;
  await using machine = await startMachine({
    ...{ command: args.command, elf: linked, arch, logger, wire },
    ...{ timeoutMs: args.timeout, hidesNothing: onlyStops },
    onConsole: (text) => showOutput(shown, text),
  });
  return (await sampled(prepared, machine.session, linked, false)).status;
}

/** `isLeft`: the target goes on when this is over. */
async function sampled(prepared: Prepared, session: Session, elf: ElfFile, isLeft: boolean): Promise<Sampled> {
  const facts = await sampledBy(prepared, { session, elf }, async (options) => {
    const found = await profile(options);
    if (isLeft && found.end !== 'target-ended') await session.detach();
    return found;
  });
  finish(prepared, facts, (await session.stub()).name);
  return { status: ExitCode.recorded, end: facts.end };
}

/** `take` is handed what the command line asks. A signal ends the samples, and nothing else until it is done. */
async function sampledBy<From>(
  { args, arch, linked, known, programs, sink, logger }: Prepared,
  { session, elf }: Pick<ProfileOptions<From>, 'session' | 'elf'>,
  take: (options: ProfileOptions<From>) => Promise<ProfileFacts>,
): Promise<ProfileFacts> {
  const stopper = new AbortController();
  using _handled = abortAtSignal(stopper);
  return await take({
    ...{ session, elf, arch, logger, sink, programs, signal: stopper.signal },
    debug: elf === linked ? known : linesOf(elf, logger),
    debugDirs: debugFilesOf(args).debugDirs ?? [],
    periodMs: periodOf(args),
    durationMs: args.duration ?? forever,
    mostSamples: args.samples ?? Number.POSITIVE_INFINITY,
    want: {
      depth: args.depth,
      mode: args.kernel ? 'kernel' : args.user ? 'user' : 'all',
      idle: args.idle,
      awaited: args.async,
      by: args.by,
    },
  });
}

function finish(prepared: Prepared, facts: ProfileFacts, stub: string): void {
  const { args, sink, tree } = prepared;
  sink.end(traceFacts(facts, stub));
  const rows = sampleRows(tree, args.sort);
  printed(args, asJson(prepared, facts, rows), () =>
    rows.length === 0
      ? `nothing was sampled${args.sampler === 'perf' ? ': no thread ran. rsptrace tasks --pid PID says what they wait for' : ''}\n`
      : sampleTable(rows.slice(0, args.top), facts.samples, tableOptions(args.full)),
  );
  if (!args.json) note(...notesOn(prepared, facts, rows.length));
}

function asJson({ args, noPerf }: Prepared, facts: ProfileFacts, rows: ReturnType<typeof sampleRows>): object {
  return {
    version: 1,
    program: args.elf,
    ...jsonFacts(facts, ['end', 'samples', 'looks', 'idle', 'otherMode', 'incomplete', 'lost', 'kernelLeftOut']),
    sampler: args.sampler ?? 'stops',
    no_perf: noPerf ?? null,
    period_ms: periodOf(args),
    mean_period_ms: facts.hadHz === undefined ? null : 1000 / facts.hadHz,
    asked_hz: 1000 / periodOf(args),
    had_hz: facts.hadHz ?? null,
    ran_ms: Math.round(facts.ranMs),
    stood_ms: Math.round(facts.stoodMs),
    clock: facts.clock.name,
    missing_libraries: facts.missingLibraries,
    programs: facts.programs.map(({ elf, samples }) => ({ elf: elf.path, samples })),
    output: args.output ?? null,
    functions: rows.map(({ name, file, self, total }) => ({ function: name, file: file ?? null, self, total })),
  };
}

function notesOn(prepared: Prepared, facts: ProfileFacts, rows: number): string[] {
  const { args } = prepared;
  const { top, output, idle, kernel } = args;
  const wanted = periodOf(args);
  const { samples, incomplete, missingLibraries } = facts;
  const [what, way] = kernel ? ['in programs', '-K'] : ['in the kernel or firmware', '-U'];
  const share = ((100 * incomplete) / Math.max(1, samples)).toFixed(0);
  return thoseOf([
    ...(args.sampler === 'perf' ? notesOnPerf(facts, wanted) : notesOnStops(facts, wanted, prepared)),
    facts.end === 'target-ended' && 'the target has ended',
    facts.end === 'exec' && 'the process has begun a program anew (exec), which was not sampled',
    rows > top && `${rows - top} more functions: --top ${rows} shows them`,
    facts.idle > 0 && !idle && `${plural(facts.idle, 'sample')} of idle ${hartWord(facts)}s left out: --idle has them`,
    facts.otherMode > 0 && `${plural(facts.otherMode, 'sample')} ${what} left out by ${way}`,
    incomplete > 0 &&
      `${plural(incomplete, 'stack')} (${share} %) end early${args.sampler === 'perf' ? ', most because perf copies 32 KiB of a stack' : ''}, so totals of outer functions are too low`,
    ...notesOnPrograms(facts),
    ...missingLibraries.map(({ name, why }) => `not read: ${name}: ${why}`),
    output !== undefined && `${output}: ${formatOf(output)?.use ?? ''}`,
  ]);
}

function notesOnStops(
  { samples, looks, ranMs, stoodMs, hadHz }: ProfileFacts,
  wanted: number,
  { args: { pid }, noPerf }: Prepared,
): string[] {
  const share = (100 * stoodMs) / Math.max(1, ranMs + stoodMs);
  const stood = share.toFixed(0);
  const between = 1000 / (hadHz ?? Number.POSITIVE_INFINITY);
  const [ran, asked] = [between, wanted].map((ms) => timeText(ms * 1e6));
  return thoseOf([
    `${plural(samples, 'sample')} in ${plural(looks, 'stop')}; the target ran ${(ranMs / 1000).toFixed(1)} s and stood ${(stoodMs / 1000).toFixed(1)} s (${stood} %)`,
    pid !== undefined &&
      share > mostStood &&
      `stops of that share change what runs, so that the shares are not those of the process alone${noPerf === undefined ? ': --sampler perf stops nothing' : ''}`,
    between > LATE * wanted &&
      `the target ran ${ran} between samples, not ${asked}, because interrupts reach it so late: shares hold, but files count ${asked} a sample`,
  ]);
}

function notesOnPerf(
  { samples, ranMs, hadHz, lost, kernelLeftOut, end, gaveUp }: ProfileFacts,
  wanted: number,
): string[] {
  const rate = hadHz === undefined ? '' : `, ${hadHz.toFixed(0)} a second of a thread that ran`;
  return thoseOf([
    `${plural(samples, 'sample')} by perf in ${(ranMs / 1000).toFixed(1)} s${rate}; the process never stood`,
    hadHz !== undefined &&
      LATE * hadHz < 1000 / wanted &&
      `${(1000 / wanted).toFixed(0)} a second were asked for: shares hold, but files count ${timeText(wanted * 1e6)} a sample`,
    lost > 0 && `${plural(lost, 'sample')} lost, because they came faster than they were read: a lower -F loses fewer`,
    kernelLeftOut &&
      'perf may not sample the kernel, so its share is missing: run as root, or set kernel.perf_event_paranoid to 1',
    end === 'perf-ended' &&
      `perf ${gaveUp === undefined ? 'was ended from outside' : `gave up (status ${gaveUp}), as it does where TMPDIR has no room`}: the profile ends there`,
  ]);
}

/** Further programs that no sample was in. */
function notesOnPrograms({ programs: [, ...further] }: ProfileFacts): string[] {
  const unseen = further.filter(({ samples }) => samples === 0).map(({ elf }) => elf.path);
  if (unseen.length === 0) return [];
  const are = unseen.length === 1 ? 'is' : 'are';
  return [
    `${unseen.join(', ')} ${are} in no sample: not run then, or not with this code at the addresses that the ELF is linked to`,
  ];
}

function traceFacts({ end, samples, looks }: ProfileFacts, stub: string): TraceFacts {
  const none = { records: 0, missing: 0, foreignHits: 0, neverLoaded: [], tailLost: false };
  return { probes: [], recording: { end, stub, events: samples, stops: looks, ...none } };
}

function noDebugInfo(path: string): RsptraceError {
  return new RsptraceError('DWARF_MISSING', `${path} has no debug info, so nothing says what its Futures are`, {
    hint: 'leave --async out, or build with debug = 2',
  });
}

function notInterruptible(why: string): RsptraceError {
  return new RsptraceError('RSP_BAD_STATE', `the process cannot be sampled: ${why}`, {
    hint: 'run rsptrace on the machine of the gdbserver, or start the program by gdbserver itself',
  });
}
