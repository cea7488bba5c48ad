import type { Argv } from 'yargs';
import { commonOptions, count, last, optionalRemote } from './options.js';

/** What `rsptrace doctor` takes beside the stub. */
export function doctorOptions<T>(args: Argv<T>) {
  return optionalRemote(commonOptions(args))
    .positional('elf', { type: 'string', describe: 'The ELF that should run there' })
    .option('probe', {
      alias: 'p',
      type: 'string',
      array: true,
      nargs: 1,
      default: [] as string[],
      describe: 'The probes that a recording would have: see record; repeatable',
    })
    .option('bt', {
      type: 'string',
      requiresArg: true,
      coerce: count('--bt'),
      describe: 'The --bt that a recording would have',
    })
    .option('scratch', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      conflicts: 'scratch-symbol',
      describe:
        'Memory that nobody else uses, to be looked at: ADDR,SIZE as in 0x87000000,1M; top: the end of RAM; none: no RAM kept from the guest',
    })
    .option('scratch-symbol', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: 'The same by the name of a static that the program reserves',
    })
    .option('timebase', {
      type: 'string',
      requiresArg: true,
      default: '10000000',
      coerce: (text: string) => count('--timebase')(text) as number,
      describe: "Ticks a second of riscv's time register",
    })
    .option('trampolines', {
      type: 'boolean',
      default: false,
      describe: 'Show the code that would be written for each probe; without --remote from the ELF alone',
    })
    .option('run', {
      type: 'boolean',
      default: true,
      describe: 'Let the guest run for about a second to measure; --no-run leaves it where it stands',
    });
}
