import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import type { GuestLimits } from '../check/index.js';
import { last, nanoseconds, seconds } from './options.js';

/** How `rsptrace run` judges the guest that it has started. */
export interface GuestArguments {
  readonly deterministic: boolean;
  readonly 'time-limit': number | undefined;
  readonly 'guest-time-limit': number | undefined;
  readonly 'console-expect': readonly string[];
  readonly 'console-fail': readonly string[];
  readonly 'console-until': string | undefined;
  readonly 'success-status': readonly number[];
  readonly 'guest-status': boolean;
  readonly 'on-panic': 'report' | 'ignore';
}

const texts = { type: 'string', array: true, nargs: 1, default: [] as string[] } as const;

export function guestOptions<T>(args: Argv<T>) {
  return args
    .option('deterministic', {
      type: 'boolean',
      default: false,
      describe:
        'Add to QEMU what makes every run the same: counted instructions, one hart, a fixed date, fixed random numbers',
    })
    .option('time-limit', {
      type: 'string',
      requiresArg: true,
      coerce: seconds,
      describe: 'The guest fails, and is ended, after this long: 60s, 2m',
    })
    .option('guest-time-limit', {
      type: 'string',
      requiresArg: true,
      coerce: nanoseconds,
      describe: 'The same in guest time, at the first event past it: 500ms, 2s',
    })
    .option('console-expect', { ...texts, describe: 'The guest fails unless its console shows this text; repeatable' })
    .option('console-fail', {
      ...texts,
      describe: "The guest fails, and is ended, if its console shows this text: 'panicked at'; repeatable",
    })
    .option('console-until', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: 'End the guest when its console shows this text: a prompt',
    })
    .option('success-status', {
      ...texts,
      coerce: (given: readonly string[]) => given.map(status),
      describe:
        'An exit status of QEMU, or of the program, that means success. Default: 0, with isa-debug-exit also 1 and 33; repeatable',
    })
    .option('guest-status', {
      type: 'boolean',
      default: false,
      describe: 'End with the exit status of QEMU, or of the program, instead of 5 when that is no success',
    })
    .option('on-panic', {
      choices: ['report', 'ignore'] as const,
      default: 'report' as const,
      requiresArg: true,
      coerce: last<'report' | 'ignore'>,
      describe:
        'report: end the recording when the guest panics, with its stack and the tree of the task; ignore: record on',
    });
}

/** `usual`: the exit statuses that mean success if none is given. */
export function guestLimits(args: GuestArguments, usual: readonly number[]): GuestLimits {
  const given = args['success-status'];
  return {
    expected: args['console-expect'],
    failing: args['console-fail'],
    until: args['console-until'],
    hostMs: args['time-limit'],
    guestNs: args['guest-time-limit'],
    success: given.length > 0 ? given : usual,
  };
}

/** What a program's output would have to come through us for, or a machine be there. Throws `USAGE`. */
export function refuseMachineOptions(args: GuestArguments & { readonly console: string | undefined }): void {
  const ofConsole = (['console', 'console-expect', 'console-fail', 'console-until'] as const).find(
    (name) => args[name] !== undefined && args[name].length > 0,
  );
  if (ofConsole !== undefined) {
    throw new RsptraceError('USAGE', `--${ofConsole} is for machines: what a program writes does not pass rsptrace`, {
      hint: 'redirect its output, and look at that',
    });
  }
  if (args.deterministic) {
    throw new RsptraceError('USAGE', '--deterministic is for machines: no program of this one runs twice alike', {
      hint: 'leave it out',
    });
  }
}

function status(text: string): number {
  const value = Number(text);
  if (/^\d{1,3}$/.test(text) && value <= 255) return value;
  throw new Error(`--success-status takes an exit status from 0 to 255, not '${text}'`);
}
