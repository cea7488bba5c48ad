// What the commands take that ask a target, a dump or a program without recording it.
import type { Region } from '../../async/tasks/index.js';
import { type Addr, addr } from '../../base/addr.js';
import { timeOf } from '../../base/time.js';
import { sampleSortKeys } from '../../trace/index.js';
import { parseFilter } from '../trace-filter.js';
import {
  asHart,
  commonOptions,
  debugFileOptions,
  elfs,
  json,
  optionalRemote,
  pid,
  plugin,
  remote,
  scratchOptions,
  timebase,
} from './common.js';
import {
  type ArgumentsOf,
  asPid,
  type Behind,
  choice,
  count,
  declared,
  flag,
  givenOf,
  list,
  type Option,
  optional,
  parsed,
  required,
  seconds,
  text,
  usage,
} from './option.js';
import { awaitsFull, checkNamesAlone, landmark, partOptions } from './saved-trace.js';

const oneOut = 'leave one of them out';

export const detach = declared({
  about: 'take out what an rsptrace that was killed has left, let the target run on',
  positionals: { elf: required('The ELF that runs there') },
  options: { remote, ...commonOptions },
});
export type DetachArguments = ArgumentsOf<typeof detach>;

export const bt = declared({
  about: "stop the target, print every hart's or thread's stack, let it go on",
  usage:
    'rsptrace bt --remote ADDR [options] <elf>\n       rsptrace bt --pid PID [options] [elf]\n       rsptrace bt --core FILE [options] <elf>',
  positionals: { elf: optional('The ELF that runs there. Default: the program of --pid') },
  options: {
    ...commonOptions,
    ...elfs,
    remote: optionalRemote,
    pid,
    core: text("Look at this ELF core instead: Linux's of a process, or a machine's (QEMU's dump-guest-memory)"),
    unwinder: choice(
      ['auto', 'cfi', 'fp', 'prologue'],
      'How frames are left: call frame information, frame pointer, or what the code does; auto picks per frame',
      { alias: 'u', default: 'auto' },
    ),
    locals: flag('Show parameters and locals of each frame'),
    depth: parsed('The most frames of one hart', count('--depth'), { default: '64' }),
  },
});
/** The ELF is undefined only with a `pid`. */
export type BacktraceArguments = ArgumentsOf<typeof bt>;

export function checkBt(given: BacktraceArguments): void {
  const { elf, remote, pid, programs } = given;
  const sources = givenOf(given, ['remote', 'pid', 'core']).length;
  if (sources > 1) throw usage('--remote, --pid and --core do not go together', 'give one of them');
  const where = asPid(elf) ?? 'give --remote :1234, --pid PID, or --core FILE';
  if (sources === 0) throw usage('where is the stub? --remote is missing', where);
  if (elf === undefined && pid === undefined) throw usage('no ELF is given', "try 'rsptrace bt --help'");
  if (programs.length > 0 && remote === undefined) throw machineOnly();
}

function machineOnly() {
  return usage('--elf names further programs of a machine', 'give the --remote of its stub, or leave --elf out');
}

export const doctor = declared({
  about: 'what this stub and its target can do, how fast, and what would make it better',
  positionals: { elf: optional('The ELF that should run there') },
  options: {
    ...commonOptions,
    remote: optionalRemote,
    probe: { ...list('The probes that a recording would have: see record; repeatable'), alias: 'p' },
    bt: parsed('The --bt that a recording would have', count('--bt')),
    ...scratchOptions(
      'Memory that nobody else uses, to be looked at: ADDR,SIZE as in 0x87000000,1M; top: the end of RAM; none: no RAM kept from the guest',
    ),
    timebase,
    trampolines: flag('Show the code that would be written for each probe; without --remote from the ELF alone'),
    code: text(
      'Show this function: its code and what of it would be replaced, the trampolines, and the proof that it is allowed; without --remote from the ELF alone',
    ),
    run: flag('Let the guest run for about a second to measure; --no-run leaves it where it stands', { default: true }),
  },
});
export type DoctorArguments = ArgumentsOf<typeof doctor>;

const taskSortKeys = ['waiting', 'polls', 'name'] as const;

export const tasks = declared({
  about: 'every task and the tree of what it awaits: in a target, a dump, or a saved trace',
  usage:
    'rsptrace tasks --remote ADDR [options] <elf>\n       rsptrace tasks --pid PID [options] [elf]\n       rsptrace tasks --core FILE [options] <elf>\n       rsptrace tasks --at TIME [options] <trace>',
  positionals: {
    elf: optional('The ELF that runs there, with debug info; with --at a saved trace. Default: the program of --pid'),
  },
  options: {
    ...commonOptions,
    remote: optionalRemote,
    pid,
    plugin,
    core: text('Look at this memory dump instead: an ELF core, or with --base a raw image of RAM'),
    base: parsed('Where the raw image of --core begins: 0x80000000', address('--base')),
    at: parsed(
      'Of a saved trace: at this time of it (1.2s), or when this function is entered (fn:GLOB)',
      landmark('--at'),
    ),
    filter: parsed("With --at: only these tasks: 'net::**', 'net::* if waiting > 1ms'", parseFilter),
    sort: choice(taskSortKeys, 'With --at: the most first; without it as they were first polled'),
    top: parsed('With --at: only so many', count('--top')),
    scan: list('Also search START,SIZE: a heap that is not found; repeatable', region),
    runtime: text('Ask this runtime alone: {runtimes}'),
    blocked: flag('Show who waits for whom, and who for each other'),
    full: flag('Show what libraries await by themselves below your own lines, too'),
    locals: flag('Show what each Future keeps in its state'),
    findings: choice(['show', 'error'], 'Deadlocks and lost wakes; error: end with status 4 if there is any', {
      default: 'show',
    }),
  },
});
/** The ELF is undefined only with a `pid`. */
export type TasksArguments = ArgumentsOf<typeof tasks>;

/** Those that go with --at, and those that do not. */
export const ofSavedTasks = ['filter', 'sort', 'top'] as const;
export const ofLookedTasks = ['scan', 'runtime', 'blocked', 'locals', 'record-wire'] as const;

export function checkTasks(given: TasksArguments): void {
  const { elf, at, core, base, pid } = given;
  const wrong = (what: string) => usage(what, asPid(elf) ?? "try 'rsptrace tasks --help'");
  const sources = givenOf(given, ['remote', 'core', 'pid']).length;
  if (elf === undefined && (pid === undefined || at !== undefined)) {
    const hint =
      'of a process of this machine: --pid PID; at a stub: --remote ADDR ELF; of a saved trace: --at TIME TRACE';
    throw usage('no process, no ELF and no trace is given', hint);
  }
  if (at !== undefined) {
    if (sources > 0) throw wrong('--at is for a saved trace, without --remote, --pid and --core');
    const [other = given.findings === 'error' ? 'findings error' : undefined] = givenOf(given, ofLookedTasks);
    if (other !== undefined) throw wrong(`--${other} is not for a saved trace, and --at is for one`);
    return;
  }
  if (givenOf(given, ofSavedTasks).length > 0) throw wrong('--filter, --sort and --top go with --at');
  if (sources !== 1) throw wrong('give one of --remote, --pid and --core, or --at TIME for a saved trace');
  if (base !== undefined && core === undefined) throw wrong('--base goes with --core');
}

export const top = declared({
  about: 'a live view of the tasks of a process or a machine: what each does and waits for, look after look',
  usage: 'rsptrace top --pid PID [options] [elf]\n       rsptrace top --remote ADDR [options] <elf>',
  positionals: { elf: optional('The ELF that runs there, with debug info. Default: the program of --pid') },
  options: {
    ...commonOptions,
    remote: optionalRemote,
    pid,
    plugin,
    interval: parsed('From one look to the next: 500ms, 2s', seconds, { alias: 'i', default: '1s' }),
    looks: parsed('End after so many looks', count('--looks'), { alias: 'n' }),
    scan: list('Also search START,SIZE: a heap that is not found; repeatable', region),
    runtime: text('Ask this runtime alone: {runtimes}'),
    polls: flag('Record every poll instead, without stops, by code that is put into the target meanwhile'),
    ...scratchOptions('With --polls: memory of a machine that nobody else uses, ADDR,SIZE; or top, or none'),
    json: flag('Stream a line of JSON a look, instead of the screen'),
  },
});
/** The ELF is undefined only with a `pid`. */
export type TopArguments = ArgumentsOf<typeof top>;

export function checkTop({ elf, remote, pid }: TopArguments): void {
  if ((remote === undefined) === (pid === undefined))
    throw usage('give one of --pid and --remote', asPid(elf) ?? "try 'rsptrace top --help'");
  if (elf === undefined && pid === undefined) throw usage('no ELF is given', "try 'rsptrace top --help'");
}

export const types = declared({
  about: "print a type's layout: offsets, sizes, holes, an enum's variants",
  positionals: {
    elf: required('A program with debug info'),
    type: required('Its path or the end of it, with generic arguments or without: exec::Task, Vec<u8>'),
  },
  options: { ...debugFileOptions, json },
});
export type TypesArguments = ArgumentsOf<typeof types>;

export const futures = declared({
  about: 'every Future in a program: states, awaits, sizes, polls',
  positionals: {
    elf: required('An ELF with debug info'),
    glob: optional("Only Futures whose name matches: level3, 'net::**'"),
  },
  options: {
    ...debugFileOptions,
    tree: flag('What awaits and holds what'),
    size: flag('The largest first, with the state and member to blame'),
    json: flag('All that is known, as one JSON object'),
    dot: flag('The awaits as a graph in Graphviz text'),
    /** A file, or '' for stdout. */
    svg: { ...text('The graph as a picture: --svg=FILE, or on stdout'), requiresArg: false },
    force: flag('Overwrite the FILE of --svg'),
  },
});
export type FuturesArguments = ArgumentsOf<typeof futures>;

export function checkFutures(given: FuturesArguments): void {
  const asked = givenOf(given, ['tree', 'json', 'dot', 'svg', 'size']);
  if (asked.length <= 1) return;
  throw usage(`${asked.map((view) => `--${view}`).join(' and ')} do not go together`, "try 'rsptrace futures --help'");
}

function region(words: string): Region {
  const [start, size, ...rest] = words.split(',');
  const length = Number(size);
  if (start === undefined || rest.length > 0 || !Number.isSafeInteger(length) || length <= 0)
    throw usage(`'${words}' is not START,SIZE`, 'write --scan 0x80400000,0x100000');
  return { start: address('--scan')(start), length };
}

function address(option: string) {
  return (words: string): Addr => {
    if (/^(0x[0-9a-f]{1,16}|\d{1,19})$/i.test(words)) return addr(BigInt(words));
    throw usage(`${option} takes an address, not '${words}'`, 'write 0x80000000');
  };
}

/** What perf and bcc's `profile` take: not a round number, so that it is in step with no timer. */
const usualHz = 99;

const groups = choice(['hart', 'thread', 'process'], 'The outermost frame of stacks; of a process hart is thread');

/** Options that a target needs, and a trace does not. */
const sampling = {
  frequency: parsed(
    `Samples a second, of each hart or thread; ${usualHz} if neither this nor --period is given`,
    hertz,
    { alias: 'F', conflicts: 'period' },
  ),
  /** Milliseconds. */
  period: parsed('Time between samples, instead: 1ms', milliseconds),
  duration: parsed(
    'How long the target is to run, the stops apart: 10s. Until Ctrl-C or its end if left out',
    seconds,
    { alias: 'd' },
  ),
  samples: parsed('End when there are so many', count('--samples'), { alias: 'n' }),
  sampler: choice(
    ['stops', 'perf'],
    "What takes the samples of --pid: Linux's perf, which stops nothing, or stops of the process. The default is perf where it may",
  ),
  kernel: flag('Only what runs in the kernel', { alias: 'K' }),
  user: flag('Only what runs in programs', { alias: 'U' }),
  idle: flag('Samples of harts that wait for an interrupt, and of threads that wait in a system call, too'),
  async: flag("Stacks of polls: what the running task awaits, without the executor's frames"),
  by: { ...groups, coerce: (given: string) => asHart(groups.coerce?.(given)) } as Option<
    'hart' | 'process' | undefined
  >,
};

export const profile = declared({
  about: 'what the target spends its time with, by samples of every stack',
  usage:
    'rsptrace profile [options] <program> [-- its arguments]\n       rsptrace profile [options] --pid PID [elf]\n       rsptrace profile [options] <elf> -- qemu-system-... [its arguments]\n       rsptrace profile [options] --remote ADDR <elf>\n       rsptrace profile --off-cpu [options] <trace>',
  positionals: { elf: optional('The program, or the ELF that runs there') },
  options: {
    ...commonOptions,
    ...partOptions,
    ...elfs,
    pid,
    'off-cpu': flag('Instead, of a saved trace of polls: how long tasks wait, by await and by who wakes them'),
    full: awaitsFull,
    remote: text('The stub: :1234, host:1234, the path of a unix socket; not with a command behind --', { alias: 'r' }),
    ...sampling,
    depth: parsed('The most frames of a stack', count('--depth'), { default: '127' }),
    sort: choice(sampleSortKeys, 'The most first: samples in a function itself (the default), or with what it calls'),
    top: parsed('The most functions in the table', count('--top'), { default: '30' }),
    output: text('Samples as a file. Its extension chooses the format: {formats}', { alias: 'o' }),
  },
});
export type ProfileArguments = ArgumentsOf<typeof profile> & { readonly command: readonly string[] };

/** With --off-cpu, and without it. */
export const ofSavedProfile = ['from', 'to', 'filter'] as const;
export const ofSampling = ['remote', 'pid', ...(Object.keys(sampling) as (keyof typeof sampling)[]), 'sort'] as const;

type GivenProfile = ArgumentsOf<typeof profile> & Behind;

export function checkProfile(given: GivenProfile): void {
  const { elf, kernel, user, remote, pid, programs, '--': command = [] } = given;
  if (elf === undefined && pid === undefined) throw usage('no program is given', 'rsptrace profile ./program');
  if (programs.length > 0 && pid !== undefined) throw machineOnly();
  if (given['off-cpu']) {
    checkOffCpu(given);
    return;
  }
  const [ofSaved] = givenOf(given, ofSavedProfile);
  if (ofSaved) throw usage(`--${ofSaved} is for saved traces`, 'leave it out, or add --off-cpu');
  if (kernel && user) throw usage('-K and -U leave nothing to sample', 'leave both out to sample all');
  if (pid !== undefined && remote !== undefined) throw usage('--pid and --remote do not go together', oneOut);
  const [where] = givenOf(given, ['remote', 'pid']);
  if (where && command.length > 0) throw usage(`--${where} and a command behind -- do not go together`, oneOut);
  if (given.sampler !== 'perf') return;
  if (pid === undefined) throw usage('--sampler perf is for a process that runs', 'name it: --pid PID');
  if (given.idle) throw usage('--sampler perf sees no thread that waits', 'leave --idle or --sampler out');
}

function checkOffCpu(given: GivenProfile): void {
  const [other] = givenOf(given, ofSampling);
  if (given.programs.length > 0) throw usage('--elf and --off-cpu do not go together', 'a saved trace needs no target');
  if (other !== undefined) throw usage(`--${other} and --off-cpu do not go together`, 'a saved trace needs no target');
  checkNamesAlone('--off-cpu', given.filter);
  if (given['--'] !== undefined) {
    throw usage('--off-cpu takes a saved trace and no command', 'record one first: rsptrace run -o x.pftrace ...');
  }
}

/** The time between samples, in milliseconds. */
export function periodOf({ frequency, period }: Pick<ProfileArguments, 'frequency' | 'period'>): number {
  return period ?? 1000 / (frequency ?? usualHz);
}

function hertz(words: string): number {
  const value = Number(words);
  if (value >= 0.01 && value <= 10_000) return value;
  throw usage(`-F takes samples a second, from 0.01 to 10000, not '${words}'`, 'try -F 99');
}

/** A time between samples. */
function milliseconds(words: string): number {
  const value = (timeOf(words, ['ns', 'us', 'ms', 's'], true) ?? 0) / 1e6;
  if (value >= 0.1 && value <= 100_000) return value;
  throw usage(`--period takes a time from 100us to 100s, not '${words}'`, 'try --period 10ms');
}
