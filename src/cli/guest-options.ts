import type { Argv } from 'yargs';
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
      describe: 'An exit status of QEMU that means success. Default: 0, and 1 with isa-debug-exit; repeatable',
    })
    .option('guest-status', {
      type: 'boolean',
      default: false,
      describe: "End with QEMU's own exit status instead of 5 when the guest fails",
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

function status(text: string): number {
  const value = Number(text);
  if (/^\d{1,3}$/.test(text) && value <= 255) return value;
  throw new Error(`--success-status takes an exit status from 0 to 255, not '${text}'`);
}
