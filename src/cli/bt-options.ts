import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import { commonOptions, count, last, optionalRemote, pidOption } from './options.js';

const unwinders = ['auto', 'cfi', 'fp', 'prologue'] as const;

/** What `rsptrace bt` takes beside the stub and the ELF. */
export function backtraceOptions<T>(args: Argv<T>) {
  return pidOption(optionalRemote(commonOptions(args)))
    .usage(
      'rsptrace bt --remote ADDR [options] <elf>\n       rsptrace bt --pid PID [options] [elf]\n       rsptrace bt --core FILE [options] <elf>',
    )
    .positional('elf', { type: 'string', describe: 'The ELF that runs there. Default: the program of --pid' })
    .option('core', {
      type: 'string',
      requiresArg: true,
      coerce: last<string>,
      describe: "Look at this ELF core instead: Linux's of a process, or a machine's (QEMU's dump-guest-memory)",
    })
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
    })
    .check(({ elf, remote, pid, core }) => {
      const sources = [remote, pid, core].filter((one) => one !== undefined).length;
      if (sources > 1) throw usage('--remote, --pid and --core do not go together', 'give one of them');
      if (sources === 0)
        throw usage('where is the stub? --remote is missing', 'give --remote :1234, --pid PID, or --core FILE');
      if (elf === undefined && pid === undefined) throw usage('no ELF is given', "try 'rsptrace bt --help'");
      return true;
    });
}

function usage(message: string, hint: string): RsptraceError {
  return new RsptraceError('USAGE', message, { hint });
}
