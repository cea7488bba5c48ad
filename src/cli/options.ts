import type { Argv } from 'yargs';
import { type ClockName, clockNames } from '../clock/index.js';
import type { OpenOptions } from '../elf/index.js';
import { type EngineName, engineNames } from '../engines/index.js';
import type { Wakes } from '../probes/index.js';
import type { Newest } from '../trace/index.js';
import { budgetOption, type CheckReportArguments, checkReportOptions } from './check-report-options.js';
import { defaultTrace } from './files.js';
import type { OptionTexts } from './option-texts.js';

const logLevels = ['silent', 'error', 'warn', 'info', 'debug', 'trace'] as const;

export const logOption = {
  choices: logLevels,
  requiresArg: true,
  coerce: last<(typeof logLevels)[number]>,
  describe:
    'Log to stderr as JSON lines; trace shows every packet and every record of the ring. Default: warnings alone, as sentences',
} as const;

/** What every command that reads an ELF takes. */
export interface DebugFileArguments {
  readonly 'debug-file': string | undefined;
  readonly 'debug-dir': readonly string[];
  readonly 'load-bias'?: bigint | undefined;
}

/** What every recording command takes. */
export interface RecordingArguments extends CommonArguments, CheckReportArguments {
  readonly budget: string | undefined;
  readonly elf: string;
  readonly probe: readonly string[];
  readonly plugin: readonly string[];
  readonly output: string;
  readonly last: Newest | undefined;
  readonly duration: number | undefined;
  readonly 'max-events': number | undefined;
  readonly until: string | undefined;
  readonly bt: number | undefined;
  readonly 'max-depth': number | undefined;
  readonly threshold: number | undefined;
  readonly args: boolean;
  readonly clock: ClockName;
  readonly timebase: number;
  readonly hw: boolean;
  readonly engine: EngineName;
  /** See `InlinedPolls`. */
  readonly exact: boolean;
  readonly wakes: Wakes;
  readonly findings: 'show' | 'error' | 'off';
  readonly 'long-poll': number | undefined;
  readonly 'dry-run': boolean;
  readonly 'keep-records': boolean;
  readonly progress: boolean;
  readonly 'from-reset': boolean;
  readonly lossless: boolean;
  readonly scratch: string | undefined;
  readonly 'scratch-symbol': string | undefined;
}

export function debugFileOptions<T>(args: Argv<T>) {
  return args
    .option('debug-file', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: "The ELF's separate debug file or .dwp package, where it is not found by itself",
    })
    .option('debug-dir', {
      type: 'string',
      array: true,
      nargs: 1,
      default: [] as string[],
      describe: 'A folder of debug files laid out like /usr/lib/debug, which is searched too, after it; repeatable',
    })
    .option('load-bias', {
      type: 'string',
      requiresArg: true,
      coerce: bias,
      describe:
        'How far a loader has moved a position-independent kernel, where rsptrace does not find it: 0x10000000000',
    });
}

function bias(given: string | readonly string[]): bigint {
  const text = last<string>(given);
  if (/^0x[0-9a-f]{1,16}$/i.test(text) && BigInt(text) % 0x1000n === 0n) return BigInt(text);
  throw new Error(`--load-bias takes a distance in whole pages, in hexadecimal: 0x10000000000, not '${text}'`);
}

export function debugFilesOf(args: DebugFileArguments): OpenOptions {
  return { debugFile: args['debug-file'], debugDirs: args['debug-dir'], loadBias: args['load-bias'] };
}

/** Options of every command at a stub, in addition to the stub. */
export interface CommonArguments extends DebugFileArguments {
  readonly timeout: number;
  readonly 'record-wire': string | undefined;
  readonly force: boolean;
  readonly json: boolean;
  readonly log: string | undefined;
}

export function commonOptions<T>(args: Argv<T>) {
  return debugFileOptions(args)
    .option('timeout', {
      type: 'string',
      requiresArg: true,
      default: '5s',
      coerce: (text: string) => seconds(text) as number,
      describe: 'How long the stub may take to answer a request; the guest of run has --time-limit',
    })
    .option('record-wire', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: 'Write every byte to and from the stub into this file; --remote replay:FILE plays it back',
    })
    .option('force', {
      type: 'boolean',
      default: false,
      describe: 'Overwrite files that are there already, of -o and of any other option',
    })
    .option('json', { type: 'boolean', default: false, describe: 'One JSON object on stdout instead of the table' })
    .option('log', logOption);
}

export function recordingOptions<T>(args: Argv<T>, texts: OptionTexts) {
  const all = engineOptions(
    pollOptions(clockOptions(callOptions(endOptions(traceOptions(commonOptions(args), texts))))),
  );
  return checkReportOptions(all).option('budget', budgetOption);
}

function traceOptions<T>(args: Argv<T>, { probes, formats }: OptionTexts) {
  return pluginOption(args)
    .option('probe', {
      alias: 'p',
      type: 'string',
      array: true,
      nargs: 1,
      default: [] as string[],
      describe: `${probes}; repeatable. Default: the Futures of the program's own crates`,
    })
    .option('output', {
      alias: 'o',
      type: 'string',
      requiresArg: true,
      default: defaultTrace.path,
      coerce: last<string>,
      describe: `The trace. Its extension chooses the format: ${formats}`,
    });
}

export function pluginOption<T>(args: Argv<T>) {
  return args.option('plugin', {
    type: 'string',
    array: true,
    nargs: 1,
    default: [] as string[],
    describe: "An ES module with kinds of probes, formats or runtimes of one's own; repeatable",
  });
}

/** `50ms`, `64M`: how much a flight recorder keeps. */
function newest(given: string | readonly string[] | undefined): Newest | undefined {
  const text = last(given);
  if (text === undefined) return undefined;
  const [, number, unit] = /^(\d+(?:\.\d+)?)([KMG])$/.exec(text.trim()) ?? [];
  const bytes = Number(number) * ({ K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }[unit ?? ''] ?? 0);
  if (number !== undefined && bytes >= 2 ** 10) return { nanos: undefined, bytes };
  if (!/^\d+(\.\d+)?(ns|us|ms|s)$/.test(text.trim())) {
    throw new Error(`--last takes a length of time or a size of memory: 50ms, 64M, not '${text}'`);
  }
  return { nanos: nanoseconds(text), bytes: NEWEST_BYTES };
}

/** What a flight recorder of a time keeps at most. */
const NEWEST_BYTES = 256 * 2 ** 20;

/** What ends a recording. */
function endOptions<T>(args: Argv<T>) {
  return args
    .option('last', {
      type: 'string',
      requiresArg: true,
      coerce: newest,
      describe: 'Keep only the newest events in memory, and write them at the end: 50ms of the trace, 64M of memory',
    })
    .option('duration', {
      alias: 'd',
      type: 'string',
      requiresArg: true,
      coerce: seconds,
      describe: 'Stop after this long: 10, 10s, 500ms, 2m',
    })
    .option('max-events', {
      alias: 'n',
      type: 'string',
      requiresArg: true,
      coerce: count('--max-events'),
      describe: 'Stop at the first hit with this many events recorded',
    })
    .option('until', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: 'Stop when this function is entered, given by its symbol: the one that powers off, or panics',
    });
}

/** What is told of a call, and which calls are left out. */
function callOptions<T>(args: Argv<T>) {
  return args
    .option('bt', {
      type: 'string',
      requiresArg: true,
      coerce: count('--bt'),
      describe: 'Record who polls: the stack, of so many frames, at the begin of each poll',
    })
    .option('max-depth', {
      alias: 'D',
      type: 'string',
      requiresArg: true,
      coerce: count('--max-depth'),
      describe: 'Leave out calls of functions that are nested deeper than this: 1 keeps the outermost',
    })
    .option('threshold', {
      alias: 't',
      type: 'string',
      requiresArg: true,
      coerce: nanoseconds,
      describe: 'Leave out calls of functions that last less, with all that they call: 500ns, 10us, 1ms',
    })
    .option('args', { type: 'boolean', default: true, describe: "Record functions' arguments and results" });
}

function clockOptions<T>(args: Argv<T>) {
  return args
    .option('clock', {
      choices: clockNames,
      requiresArg: true,
      coerce: last<ClockName>,
      default: 'auto' as const,
      describe: 'Where times come from',
    })
    .option('timebase', {
      type: 'string',
      requiresArg: true,
      default: '10000000',
      coerce: (text: string) => count('--timebase')(text) as number,
      describe: "Ticks a second of riscv's time register (timebase-frequency in the device tree)",
    });
}

/** What is told of polls and tasks. */
function pollOptions<T>(args: Argv<T>) {
  return args
    .option('exact', {
      type: 'boolean',
      default: false,
      describe: 'See every poll that was inlined, with a stop where nothing else does, instead of deriving it',
    })
    .option('findings', {
      choices: ['show', 'error', 'off'] as const,
      default: 'show' as const,
      requiresArg: true,
      coerce: last<'show' | 'error' | 'off'>,
      describe: 'What looks wrong with tasks, at the end; error: end with status 4 if there is any',
    })
    .option('long-poll', {
      type: 'string',
      requiresArg: true,
      describe: 'A poll that takes longer is a finding, 100 ms if nothing stops the target: 500us, 10ms',
      coerce: nanoseconds,
    })
    .option('wakes', {
      choices: ['auto', 'always', 'never'] as const,
      default: 'auto' as const,
      requiresArg: true,
      coerce: last<Wakes>,
      describe: 'Who wakes which task, where polls are traced: auto where that needs no stop',
    });
}

function engineOptions<T>(args: Argv<T>) {
  return args
    .option('engine', {
      choices: engineNames,
      requiresArg: true,
      coerce: last<EngineName>,
      default: 'auto' as const,
      describe:
        'target: notes events inside the target, without stops or not at all; stop: a breakpoint each; mixed: without stops what can be had so; auto: the same, and what stops too often beside it is switched off',
    })
    .option('from-reset', {
      type: 'boolean',
      default: false,
      describe: "Stop at every probe of a boot before the kernel's last page table is in use, not at 500 hits only",
    })
    .option('lossless', {
      type: 'boolean',
      default: false,
      describe:
        'A process waits where records come faster than they are read, as a machine always does, instead of at most 20 ms in a second, behind which records are lost',
    })
    .option('scratch', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      conflicts: 'scratch-symbol',
      describe:
        'Memory that nobody else uses, for trampolines: ADDR,SIZE as in 0x87000000,1M; top: the end of RAM, if the guest never uses it; hidden: RAM that is kept from the guest of a QEMU at its reset (-S), which is the default there; none: no such RAM',
    })
    .option('scratch-symbol', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: 'The same by the name of a static that the program reserves',
    })
    .option('progress', {
      type: 'boolean',
      default: false,
      describe: 'Say on stderr how long reading takes, if that is over a second, also where it is no terminal',
    })
    .option('keep-records', {
      type: 'boolean',
      default: false,
      describe: 'Keep what the target wrote beside the trace, for rsptrace dump: OUTPUT.records',
    })
    .option('dry-run', {
      type: 'boolean',
      default: false,
      describe: 'Only say which probes there are and which engine each would use, and why',
    })
    .option('hw', {
      type: 'boolean',
      default: false,
      describe: 'Hardware breakpoints (Z1) everywhere, not only in ROM and flash',
    });
}

const remote = {
  alias: 'r',
  type: 'string',
  requiresArg: true,
  coerce: last<string>,
  describe: 'The stub: :1234, host:1234, the path of a unix socket, or replay:FILE',
} as const;

export function remoteOption<T>(args: Argv<T>) {
  return args.option('remote', { ...remote, demandOption: true });
}

/** A process of this machine, instead of a stub. */
export function pidOption<T>(args: Argv<T>) {
  return args.option('pid', {
    alias: 'p',
    type: 'string',
    requiresArg: true,
    coerce: last<string>,
    describe: 'A process of this machine, by its number',
  });
}

/** For a command that can do something without a stub. */
export function optionalRemote<T>(args: Argv<T>) {
  return args.option('remote', remote);
}

export function reconnectOption<T>(args: Argv<T>) {
  return args.option('reconnect', {
    type: 'boolean',
    default: false,
    describe: 'When the link breaks, try for 10 s to connect again, and go on with a gap in the trace',
  });
}

/** The threads of a process are its harts: `--by thread` is `--by hart`. */
export function asHart(given: string | readonly string[] | undefined): string | undefined {
  const by = last(given);
  return by === 'thread' ? 'hart' : by;
}

/** An option that is given twice: the last value counts. */
export function last<T>(value: T | readonly T[]): T {
  return Array.isArray(value) ? (value.at(-1) as T) : (value as T);
}

/** A time as `perf` and `timeout` read it, in milliseconds. */
export function seconds(given: string | readonly string[] | undefined): number | undefined {
  const text = last(given);
  if (text === undefined) return undefined;
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h|)$/.exec(text.trim());
  const unit = { ms: 1, s: 1000, '': 1000, m: 60_000, h: 3_600_000 }[found?.[2] ?? ''] ?? 1000;
  const ms = found ? Number(found[1]) * unit : 0;
  if (!(ms > 0 && ms <= 2 ** 31 - 1)) {
    throw new Error(`'${text}' is not a length of time: write 10, 10s, 500ms or 2m, at most 24 days`);
  }
  return ms;
}

/** A length of guest time, in nanoseconds. */
export function nanoseconds(given: string | readonly string[] | undefined): number | undefined {
  const text = last(given);
  if (text === undefined) return undefined;
  const found = /^(\d+(?:\.\d+)?)(ns|us|ms|s)$/.exec(text.trim());
  const unit = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[found?.[2] ?? ''] ?? 1;
  const nanos = found ? Number(found[1]) * unit : 0;
  if (!(nanos > 0 && nanos <= Number.MAX_SAFE_INTEGER)) {
    throw new Error(`'${text}' is not a length of time: write 500ns, 10us, 1ms or 1s`);
  }
  return nanos;
}

export function count(option: string) {
  return (given: string | readonly string[] | undefined): number | undefined => {
    const text = last(given);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (!(Number.isSafeInteger(value) && value > 0)) {
      throw new Error(`${option} takes a whole number above 0, not '${text}'`);
    }
    return value;
  };
}
