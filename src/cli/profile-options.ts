import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import { type SampleSortKey, sampleSortKeys } from '../trace/index.js';
import type { OptionTexts } from './option-texts.js';
import { asHart, type CommonArguments, commonOptions, count, last, pidOption, seconds } from './options.js';
import { type SelectionArguments, selectionOptions } from './saved-trace-options.js';

export interface ProfileArguments extends CommonArguments, SelectionArguments {
  /** With `off-cpu` a saved trace; undefined only with a `pid`. */
  readonly elf: string | undefined;
  readonly pid: string | undefined;
  readonly 'off-cpu': boolean;
  readonly remote: string | undefined;
  /** Samples a second. */
  readonly frequency: number | undefined;
  /** Milliseconds. */
  readonly period: number | undefined;
  readonly duration: number | undefined;
  readonly samples: number | undefined;
  readonly kernel: boolean;
  readonly user: boolean;
  readonly idle: boolean;
  readonly async: boolean;
  readonly by: 'hart' | 'process' | undefined;
  readonly depth: number;
  readonly sort: SampleSortKey | undefined;
  readonly top: number;
  readonly output: string | undefined;
  readonly command: readonly string[];
}

const oneOut = 'leave one of them out';
const groups = ['hart', 'thread', 'process'] as const;
/** What perf and bcc's `profile` take: not a round number, so that it is in step with no timer. */
const usualHz = 99;

/** What `rsptrace profile` takes. */
export function profileOptions<T>(args: Argv<T>, { formats }: OptionTexts) {
  const which = pidOption(selectionOptions(commonOptions(args)))
    .usage(
      'rsptrace profile [options] <program> [-- its arguments]\n       rsptrace profile [options] --pid PID [elf]\n       rsptrace profile [options] <elf> -- qemu-system-... [its arguments]\n       rsptrace profile [options] --remote ADDR <elf>\n       rsptrace profile --off-cpu [options] <trace>',
    )
    .option('off-cpu', {
      type: 'boolean',
      default: false,
      describe: 'Instead, of a saved trace of polls: how long tasks wait, by await and by who wakes them',
    })
    .option('remote', {
      alias: 'r',
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: 'The stub: :1234, host:1234, the path of a unix socket; not with a command behind --',
    });
  return resultOptions(stackOptions(rateOptions(which)), formats).check((given) => {
    const { elf } = given as { readonly elf?: string };
    if (elf === undefined && given.pid === undefined) throw usage('no program is given', 'rsptrace profile ./program');
    if (given['off-cpu']) return checkOffCpu(given);
    const { kernel, user, remote, pid, '--': behind } = given;
    for (const name of ['from', 'to', 'filter'] as const) {
      if (given[name] !== undefined) throw usage(`--${name} is for saved traces`, 'leave it out, or add --off-cpu');
    }
    if (kernel && user) throw usage('-K and -U leave nothing to sample', 'leave both out to sample all');
    const command = (behind as readonly string[] | undefined) ?? [];
    if (pid !== undefined && remote !== undefined) throw usage('--pid and --remote do not go together', oneOut);
    for (const [name, value] of Object.entries({ remote, pid })) {
      if (value === undefined || command.length === 0) continue;
      throw usage(`--${name} and a command behind -- do not go together`, oneOut);
    }
    return true;
  });
}

/** How often, and until when. */
function rateOptions<T>(args: Argv<T>) {
  return args
    .option('frequency', {
      alias: 'F',
      type: 'string',
      requiresArg: true,
      coerce: hertz,
      conflicts: 'period',
      describe: `Samples a second, of each hart or thread; ${usualHz} if neither this nor --period is given`,
    })
    .option('period', {
      type: 'string',
      requiresArg: true,
      coerce: milliseconds,
      describe: 'Time between samples, instead: 1ms',
    })
    .option('duration', {
      alias: 'd',
      type: 'string',
      requiresArg: true,
      coerce: seconds,
      describe: 'How long the target is to run, the stops apart: 10s. Until Ctrl-C or its end if left out',
    })
    .option('samples', {
      alias: 'n',
      type: 'string',
      requiresArg: true,
      coerce: count('--samples'),
      describe: 'End when there are so many',
    });
}

/** Which samples, and what their stacks are. */
function stackOptions<T>(args: Argv<T>) {
  return args
    .option('kernel', { alias: 'K', type: 'boolean', default: false, describe: 'Only what runs in the kernel' })
    .option('user', { alias: 'U', type: 'boolean', default: false, describe: 'Only what runs in programs' })
    .option('idle', {
      type: 'boolean',
      default: false,
      describe: 'Samples of harts that wait for an interrupt, and of threads that wait in a system call, too',
    })
    .option('async', {
      type: 'boolean',
      default: false,
      describe: "Stacks of polls: what the running task awaits, without the executor's frames",
    })
    .option('by', {
      choices: groups,
      coerce: (given: Parameters<typeof asHart>[0]) => asHart(given) as 'hart' | 'process' | undefined,
      describe: 'The outermost frame of stacks; of a process hart is thread',
    })
    .option('depth', {
      type: 'string',
      requiresArg: true,
      default: '127',
      coerce: (text: string) => count('--depth')(text) as number,
      describe: 'The most frames of a stack',
    });
}

function resultOptions<T>(args: Argv<T>, formats: string) {
  return args
    .option('sort', {
      choices: sampleSortKeys,
      coerce: last<SampleSortKey>,
      describe: 'The most first: samples in a function itself (the default), or with what it calls',
    })
    .option('top', {
      type: 'string',
      requiresArg: true,
      default: '30',
      coerce: (text: string) => count('--top')(text) as number,
      describe: 'The most functions in the table',
    })
    .option('output', {
      alias: 'o',
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: `Samples as a file. Its extension chooses the format: ${formats}`,
    });
}

/** Options that a target needs, and a trace does not. */
const ofTargets = [
  'remote',
  'pid',
  'frequency',
  'period',
  'duration',
  'samples',
  'kernel',
  'user',
  'idle',
  'async',
  'by',
  'sort',
];

function checkOffCpu(given: Readonly<Record<string, unknown>>): true {
  const other = ofTargets.find((name) => given[name] !== undefined && given[name] !== false);
  if (other !== undefined) throw usage(`--${other} and --off-cpu do not go together`, 'a saved trace needs no target');
  if (given['--'] !== undefined) {
    throw usage('--off-cpu takes a saved trace and no command', 'record one first: rsptrace run -o x.pftrace ...');
  }
  return true;
}

/** The time between samples, in milliseconds. */
export function periodOf({ frequency, period }: ProfileArguments): number {
  return period ?? 1000 / (frequency ?? usualHz);
}

function hertz(given: string | readonly string[] | undefined): number | undefined {
  const text = last(given);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (value >= 0.01 && value <= 10_000) return value;
  throw usage(`-F takes samples a second, from 0.01 to 10000, not '${text}'`, 'try -F 99');
}

/** The same as a time between samples, with `us` and `ns` too. */
function milliseconds(given: string | readonly string[] | undefined): number | undefined {
  const text = last(given);
  if (text === undefined) return undefined;
  const found = /^(\d+(?:\.\d+)?)(ns|us|ms|s|)$/.exec(text.trim());
  const unit = { ns: 1e-6, us: 1e-3, ms: 1, s: 1000, '': 1000 }[found?.[2] ?? ''] ?? 1000;
  const value = found ? Number(found[1]) * unit : 0;
  if (value >= 0.1 && value <= 100_000) return value;
  throw usage(`--period takes a time from 100us to 100s, not '${text}'`, 'try --period 10ms');
}

function usage(what: string, hint: string): RsptraceError {
  return new RsptraceError('USAGE', what, { hint });
}
