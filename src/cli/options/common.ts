// The options that several commands have.
import type { OpenOptions } from '../../elf/index.js';
import { wishOf } from '../logging.js';
import { count, flag, list, parsed, seconds, text, under, type Values } from './option.js';

export const json = flag('One JSON object on stdout');
export const plugin = list("An ES module with kinds of probes, formats or runtimes of one's own; repeatable");

export const logOptions = {
  log: parsed(
    'Log to stderr: silent, error, warn, info, debug or trace, which shows every packet and every record of the ring; of some parts alone: debug:inject,clock. Lines for people on a terminal, else JSON lines. Default: $RSPTRACE_LOG, or warnings alone, as sentences',
    logWords,
  ),
};

function logWords(words: string): string {
  wishOf(words);
  return words;
}

/** What every command that reads an ELF takes. */
export const debugFileOptions = under('The target:', {
  'debug-file': text("The ELF's separate debug file or .dwp package, where it is not found by itself"),
  'debug-dir': list(
    'A folder of debug files laid out like /usr/lib/debug, which is searched too, after it; repeatable',
  ),
  'load-bias': parsed(
    'How far a loader has moved a position-independent kernel, where rsptrace does not find it: 0x10000000000',
    bias,
  ),
});
export type DebugFileArguments = Omit<Values<typeof debugFileOptions>, 'load-bias'> & {
  readonly 'load-bias'?: bigint | undefined;
};

function bias(words: string): bigint {
  if (/^0x[0-9a-f]{1,16}$/i.test(words) && BigInt(words) % 0x1000n === 0n) return BigInt(words);
  throw new Error(`--load-bias takes a distance in whole pages, in hexadecimal: 0x10000000000, not '${words}'`);
}

export function debugFilesOf(args: DebugFileArguments): OpenOptions {
  return { debugFile: args['debug-file'], debugDirs: args['debug-dir'], loadBias: args['load-bias'] };
}

/** Options of every command at a stub, in addition to the stub. */
export const commonOptions = {
  ...debugFileOptions,
  ...under('The target:', {
    timeout: parsed('How long the stub may take to answer a request; the guest of run has --time-limit', seconds, {
      default: '5s',
    }),
    'record-wire': text('Write every byte to and from the stub into this file; --remote replay:FILE plays it back'),
  }),
  force: flag('Overwrite files that are there already, of -o and of any other option'),
  json: flag('One JSON object on stdout instead of the table'),
  ...logOptions,
};
export type CommonArguments = Values<typeof commonOptions>;

const where = 'The stub: :1234, host:1234, the path of a unix socket, or replay:FILE';
export const { remote } = under('The target:', { remote: text(where, { alias: 'r', demandOption: true }) });
/** For a command that can do something without a stub. */
export const { optionalRemote } = under('The target:', { optionalRemote: text(where, { alias: 'r' }) });
/** Further programs of a machine. */
export const elfs = under('The target:', {
  elf: list(
    'A further program of the same machine, such as a user program of the kernel; which one runs its code decides. FILE@0x10000: a position-independent one, and where it is loaded; repeatable',
  ),
});

/** A process of this machine, instead of a stub. */
export const { pid } = under('The target:', { pid: text('A process of this machine, by its number', { alias: 'p' }) });
export const timebase = parsed(
  "Ticks a second of riscv's time register (timebase-frequency in the device tree)",
  count('--timebase'),
  { default: '10000000' },
);

/** Where trampolines may lie. */
export function scratchOptions(describe: string) {
  return {
    scratch: text(describe, { conflicts: 'scratch-symbol' }),
    'scratch-symbol': text('The same by the name of a static that the program reserves'),
  };
}

export const budgetText = 'The budget file: what must come, and how long it may take (JSON)';

/** Where the outcome of a check goes, besides stdout. */
export const checkReportOptions = {
  junit: text('Write JUnit XML into this file: a test case a limit'),
  markdown: text('Write a summary into this file. Default in GitHub Actions: the page of the step'),
  github: flag('Print annotations for what is broken: ::error file=,line=::', {
    default: process.env.GITHUB_ACTIONS === 'true',
    defaultDescription: 'in GitHub Actions',
  }),
  strict: flag('A budget that names nothing in the trace is broken, too'),
};
export type CheckReportArguments = Values<typeof checkReportOptions>;

/** The threads of a process are its harts: `--by thread` is `--by hart`. */
export function asHart<T extends string>(by: T): Exclude<T, 'thread'> | 'hart' {
  return by === 'thread' ? 'hart' : (by as Exclude<T, 'thread'>);
}
