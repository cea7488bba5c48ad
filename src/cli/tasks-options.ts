import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import type { OptionTexts } from './option-texts.js';
import { commonOptions, last, optionalRemote, pluginOption } from './options.js';

/** What `rsptrace tasks` takes. */
export function tasksOptions<T>(args: Argv<T>, texts: OptionTexts) {
  return pluginOption(optionalRemote(commonOptions(args)))
    .positional('elf', { type: 'string', demandOption: true, describe: 'The ELF that runs there, with debug info' })
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
    .check(({ remote, core, base }) => {
      if ((remote === undefined) === (core === undefined)) throw usage('give either --remote or --core');
      if (base !== undefined && core === undefined) throw usage('--base goes with --core');
      return true;
    });
}

function usage(message: string): RsptraceError {
  return new RsptraceError('USAGE', message, { hint: "try 'rsptrace tasks --help'" });
}
