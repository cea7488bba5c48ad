import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import type { OptionTexts } from './option-texts.js';
import { commonOptions, count, last, optionalRemote, pidOption, pluginOption } from './options.js';
import { filter, moment } from './saved-trace-options.js';

const taskSortKeys = ['waiting', 'polls', 'name'] as const;
export type TaskSortKey = (typeof taskSortKeys)[number];

/** What `rsptrace tasks` takes. */
export function tasksOptions<T>(args: Argv<T>, texts: OptionTexts) {
  return savedOptions(dumpOptions(pluginOption(pidOption(optionalRemote(commonOptions(args))))))
    .usage(
      'rsptrace tasks --remote ADDR [options] <elf>\n       rsptrace tasks --pid PID [options] [elf]\n       rsptrace tasks --core FILE [options] <elf>\n       rsptrace tasks --at TIME [options] <trace>',
    )
    .positional('elf', {
      type: 'string',
      describe: 'The ELF that runs there, with debug info; with --at a saved trace. Default: the program of --pid',
    })
    .option('scan', {
      type: 'string',
      array: true,
      nargs: 1,
      default: [] as string[],
      describe: 'Also search START,SIZE: a heap that is not found; repeatable',
    })
    .option('runtime', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: `Ask this runtime alone: ${texts.runtimes}`,
    })
    .option('blocked', { type: 'boolean', default: false, describe: 'Show who waits for whom, and who for each other' })
    .option('locals', { type: 'boolean', default: false, describe: 'Show what each Future keeps in its state' })
    .option('findings', {
      choices: ['show', 'error'] as const,
      default: 'show' as const,
      requiresArg: true,
      coerce: last<'show' | 'error'>,
      describe: 'Deadlocks and lost wakes; error: end with status 4 if there is any',
    })
    .check(({ elf, at, filter, sort, top, remote, core, base, pid }) => {
      const sources = [remote, core, pid].filter((one) => one !== undefined).length;
      if (elf === undefined && (pid === undefined || at !== undefined)) throw usage('no ELF and no trace is given');
      if (at !== undefined) {
        if (sources > 0) throw usage('--at is for a saved trace, without --remote, --pid and --core');
        return true;
      }
      if ([filter, sort, top].some((one) => one !== undefined)) throw usage('--filter, --sort and --top go with --at');
      if (sources !== 1) throw usage('give one of --remote, --pid and --core, or --at TIME for a saved trace');
      if (base !== undefined && core === undefined) throw usage('--base goes with --core');
      return true;
    });
}

function dumpOptions<T>(args: Argv<T>) {
  return args
    .option('core', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: 'Look at this memory dump instead: an ELF core, or with --base a raw image of RAM',
    })
    .option('base', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: 'Where the raw image of --core begins: 0x80000000',
    });
}

/** Of a saved trace. */
function savedOptions<T>(args: Argv<T>) {
  return args
    .option('at', {
      type: 'string',
      requiresArg: true,
      coerce: moment('--at'),
      describe: 'Of a saved trace: at this time of it (1.2s), or when this function is entered (fn:GLOB)',
    })
    .option('filter', {
      type: 'string',
      requiresArg: true,
      coerce: filter,
      describe: "With --at: only these tasks: 'net::**', 'net::* if waiting > 1ms'",
    })
    .option('sort', {
      choices: taskSortKeys,
      coerce: last<TaskSortKey>,
      describe: 'With --at: the most first; without it as they were first polled',
    })
    .option('top', { type: 'string', requiresArg: true, coerce: count('--top'), describe: 'With --at: only so many' });
}

function usage(message: string): RsptraceError {
  return new RsptraceError('USAGE', message, { hint: "try 'rsptrace tasks --help'" });
}
