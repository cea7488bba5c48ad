import type { Argv } from 'yargs';
import { commonOptions, count, last } from './options.js';

const unwinders = ['auto', 'cfi', 'fp', 'prologue'] as const;

/** What `rsptrace bt` takes beside the stub and the ELF. */
export function backtraceOptions<T>(args: Argv<T>) {
  return commonOptions(args)
    .option('unwinder', {
      alias: 'u',
      choices: unwinders,
      requiresArg: true,
      coerce: last<(typeof unwinders)[number]>,
      default: 'auto' as const,
      describe:
        'How frames are left: call frame information, frame pointer, or what the code does; auto picks per frame',
    })
    .option('locals', { type: 'boolean', default: false, describe: 'Show parameters and locals of each frame' })
    .option('depth', {
      type: 'string',
      requiresArg: true,
      default: '64',
      coerce: (text: string) => count('--depth')(text) as number,
      describe: 'The most frames of one hart',
    });
}
