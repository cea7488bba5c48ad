import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import type { OptionTexts } from './option-texts.js';
import { commonOptions, count, last, optionalRemote, pluginOption } from './options.js';
import { filter, moment } from './saved-trace-options.js';

const taskSortKeys = ['waiting', 'polls', 'name'] as const;
export type TaskSortKey = (typeof taskSortKeys)[number];

/** What `rsptrace tasks` takes. */
export function tasksOptions<T>(args: Argv<T>, texts: OptionTexts) {
  return pluginOption(optionalRemote(commonOptions(args)))
    .positional('elf', {
      type: 'string',
      demandOption: true,
      describe: 'The ELF that runs there, with debug info; with --at a saved trace',
    })
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
    .option('top', { type: 'string', requiresArg: true, coerce: count('--top'), describe: 'With --at: only so many' })
    .check(({ at, filter, sort, top, remote, core, base }) => {
      if (at !== undefined) {
        if (remote !== undefined || core !== undefined)
          throw usage('--at is for a saved trace, without --remote and --core');
        return true;
      }
      if ([filter, sort, top].some((one) => one !== undefined)) throw usage('--filter, --sort and --top go with --at');
      if ((remote === undefined) === (core === undefined))
        throw usage('give either --remote or --core, or --at TIME for a saved trace');
      if (base !== undefined && core === undefined) throw usage('--base goes with --core');
      return true;
    });
}

function usage(message: string): RsptraceError {
  return new RsptraceError('USAGE', message, { hint: "try 'rsptrace tasks --help'" });
}
