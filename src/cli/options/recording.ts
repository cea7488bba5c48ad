// What recordings take: at a stub, of a program or QEMU that is started, of a process that runs.
import { timeOf } from '../../base/time.js';
import { clockNames } from '../../clock/index.js';
import { engineNames } from '../../engines/index.js';
import type { Newest } from '../../trace/index.js';
import { defaultTrace } from '../files.js';
import {
  budgetText,
  checkReportOptions,
  commonOptions,
  elfs,
  plugin,
  remote,
  scratchOptions,
  timebase,
} from './common.js';
import {
  type ArgumentsOf,
  choice,
  count,
  declared,
  flag,
  list,
  nanoseconds,
  optional,
  parsed,
  required,
  type SettingsTaken,
  seconds,
  text,
  under,
  type Values,
} from './option.js';

const traceOptions = under('What is recorded:', {
  probe: {
    ...list("{probes}; repeatable. Default: the Futures of the program's own crates"),
    alias: 'p',
  },
  output: text(
    'The trace. Its extension chooses the format: {formats}; .records: what the target writes, of which events are made later',
    { alias: 'o', default: defaultTrace.path },
  ),
  plugin,
});

/** What ends a recording. */
const endOptions = under('When a recording ends:', {
  last: parsed(
    'Keep only the newest events in memory, and write them at the end: 50ms of the trace, 64M of memory',
    newest,
  ),
  duration: parsed('Stop after this long: 10, 10s, 500ms, 2m', seconds, { alias: 'd' }),
  'max-events': parsed('Stop at the first hit with this many events recorded', count('--max-events'), { alias: 'n' }),
  until: text('Stop when this function is entered, given by its symbol: the one that powers off, or panics'),
});

/** `off` is no time at all. */
function patience(words: string): number {
  return words === 'off' ? Number.POSITIVE_INFINITY : seconds(words);
}

/** What is recorded of a call, and which calls are left out. */
const callOptions = under('What is recorded:', {
  bt: parsed('Record who polls: the stack, of so many frames, at the begin of each poll', count('--bt')),
  'max-depth': parsed(
    'Leave out calls of functions that are nested deeper than this: 1 keeps the outermost',
    count('--max-depth'),
    { alias: 'D' },
  ),
  threshold: parsed(
    'Leave out calls of functions that last less, with all that they call: 500ns, 10us, 1ms',
    nanoseconds,
    { alias: 't' },
  ),
  args: flag("Record functions' arguments and results", { default: true }),
});

/** What is recorded of polls and tasks. */
const pollOptions = under('What is recorded:', {
  /** See `InlinedPolls`. */
  exact: flag('See every poll that was inlined, with a stop where nothing else does, instead of deriving it'),
  findings: choice(
    ['show', 'error', 'off'],
    'What looks wrong with tasks, at the end; error: end with status 4 if there is any',
    { default: 'show' },
  ),
  'long-poll': parsed(
    'A poll that takes longer is a finding, 100 ms if nothing stops the target: 500us, 10ms',
    nanoseconds,
  ),
  wakes: choice(
    ['auto', 'always', 'never'],
    'Who wakes which task, where polls are traced: auto where that needs no stop',
    { default: 'auto' },
  ),
});

const engineOptions = under('How it is recorded:', {
  engine: choice(
    engineNames,
    'target: notes events inside the target, without stops or not at all; stop: a breakpoint each; mixed: without stops what can be had so; auto: the same, and what stops too often beside it is switched off',
    { default: 'auto' },
  ),
  'from-reset': flag(
    "Stop at every probe of a boot before the kernel's last page table is in use, not at 500 hits only",
  ),
  lossless: flag(
    'A process waits where records come faster than they are read, as a machine always does, instead of at most 20 ms in a second, behind which records are lost',
  ),
  ...scratchOptions(
    'Memory that nobody else uses, for trampolines: ADDR,SIZE as in 0x87000000,1M; top: the end of RAM, if the guest never uses it; hidden: RAM that is kept from the guest of a QEMU at its reset (-S), which is the default there; none: no such RAM',
  ),
  stalled: parsed(
    'Say where each hart or thread is when no event has come for so long, which interrupts a machine once; off: never',
    patience,
    { default: '5s' },
  ),
  progress: flag('Say on stderr how long reading takes, if that is over a second, also where it is no terminal'),
  'keep-records': flag('Keep what the target wrote beside the trace, for rsptrace dump: OUTPUT.records'),
  'dry-run': flag('Only say which probes there are and which engine each would use, and why'),
  hw: flag('Hardware breakpoints (Z1) everywhere, not only in ROM and flash'),
});

/** What every recording takes. */
export const recordingOptions = {
  ...traceOptions,
  ...callOptions,
  ...pollOptions,
  ...endOptions,
  ...engineOptions,
  ...under('How it is recorded:', {
    clock: choice(clockNames, 'Where times come from', { default: 'auto' }),
    timebase,
  }),
  ...commonOptions,
  ...elfs,
  ...under('Budgets:', { budget: text(budgetText), ...checkReportOptions }),
};
export type RecordingArguments = Values<typeof recordingOptions> & {
  readonly elf: string;
  readonly settings?: SettingsTaken | undefined;
};

/** `50ms`, `64M`: how much a flight recorder keeps. */
function newest(words: string): Newest {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([KMG])$/.exec(words.trim()) ?? [];
  const bytes = Number(number) * ({ K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }[unit ?? ''] ?? 0);
  if (number !== undefined && bytes >= 2 ** 10) return { nanos: undefined, bytes };
  if (timeOf(words, ['ns', 'us', 'ms', 's']) !== undefined) return { nanos: nanoseconds(words), bytes: NEWEST_BYTES };
  throw new Error(`--last takes a length of time or a size of memory: 50ms, 64M, not '${words}'`);
}

/** What a flight recorder of a time keeps at most. */
const NEWEST_BYTES = 256 * 2 ** 20;

const withDebugInfo = 'The ELF that runs there, with debug info';

export const remoteOptions = {
  ...under('The target:', {
    remote,
    reconnect: flag('When the link breaks, try for 10 s to connect again, and go on with a gap in the trace'),
  }),
  ...recordingOptions,
};
export const record = declared({
  about: 'record every poll at a running stub',
  positionals: { elf: required(withDebugInfo) },
  options: remoteOptions,
});
export type RecordArguments = ArgumentsOf<typeof record>;

export const attach = declared({
  about: 'record a process that runs on this machine, under a gdbserver of its own',
  positionals: {
    pid: required('The number of the process'),
    elf: optional('Its program with debug info, if it runs a stripped one'),
  },
  options: recordingOptions,
});
export type AttachArguments = ArgumentsOf<typeof attach>;

/** How `rsptrace run` judges the guest that it has started. */
const guestOptions = under('The guest:', {
  deterministic: flag(
    'Add to QEMU what makes every run the same: counted instructions, one hart, a fixed date, fixed random numbers',
  ),
  'time-limit': parsed('The guest fails, and is ended, after this long: 60s, 2m', seconds),
  'guest-time-limit': parsed('The same in guest time, at the first event past it: 500ms, 2s', nanoseconds),
  'console-expect': list('The guest fails unless its console shows this text; repeatable'),
  'console-fail': list("The guest fails, and is ended, if its console shows this text: 'panicked at'; repeatable"),
  'console-until': text('End the guest when its console shows this text: a prompt'),
  'success-status': list(
    'An exit status of QEMU, or of the program, that means success. Default: 0, with isa-debug-exit also 1 and 33; repeatable',
    status,
  ),
  'guest-status': flag('End with the exit status of QEMU, or of the program, instead of 5 when that is no success'),
  'on-panic': choice(
    ['report', 'ignore'],
    'report: end the recording when the guest panics, with its stack and the tree of the task; ignore: record on',
    { default: 'report' },
  ),
  console: text("Keep the guest's console output in this file"),
  'keep-running': flag('Let QEMU run to its end after --duration, --max-events or SIGTERM'),
});
export type GuestArguments = Values<typeof guestOptions>;

function status(words: string): number {
  const value = Number(words);
  if (/^\d{1,3}$/.test(words) && value <= 255) return value;
  throw new Error(`--success-status takes an exit status from 0 to 255, not '${words}'`);
}

export const run = declared({
  about: 'start a program, or QEMU frozen, and record every poll',
  usage:
    'rsptrace run [options] <program> [-- its arguments]\n       rsptrace run [options] [elf] -- qemu-system-... [its arguments]',
  positionals: { elf: optional(`${withDebugInfo}. Default: what -kernel names`) },
  options: {
    ...recordingOptions,
    ...guestOptions,
  },
});
export type RunArguments = ArgumentsOf<typeof run> & { readonly command: readonly string[] };
