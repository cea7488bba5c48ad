import { readFileSync } from 'node:fs';
import yargs, { type Argv } from 'yargs';
import { backtraceOptions } from './bt-options.js';
import { checkWords, declaredOptions, type KnownOptions } from './check-words.js';
import { doctorOptions } from './doctor-options.js';
import { checkFiles, type FileArguments } from './files.js';
import { futuresOptions } from './futures-options.js';
import { commonOptions, debugFileOptions, last, reconnectOption, recordingOptions, remoteOption } from './options.js';
import { declareSavedTraceCommands, savedTraceCommands } from './saved-trace-commands.js';
import { recordsBesideStdout } from './standard-streams.js';
import { tasksOptions } from './tasks-options.js';
import { usageError } from './usage-error.js';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

type Options<T> = (args: Argv) => Argv<T>;

const elfOption = <T>(args: Argv<T>, describe = 'The ELF that runs there') =>
  args.positional('elf', { type: 'string', demandOption: true, describe });

const withDebugInfo = 'The ELF that runs there, with debug info';

/** The options of each command; '$0' is the one without a name. */
const options = {
  $0: (args: Argv) => elfOption(reconnectOption(recordingOptions(remoteOption(args))), withDebugInfo),
  run: (args: Argv) =>
    elfOption(recordingOptions(args), withDebugInfo)
      .usage('rsptrace run [options] <elf> -- qemu-system-... [its arguments]')
      .option('console', {
        coerce: last<string>,
        type: 'string',
        requiresArg: true,
        describe: "Keep the guest's console output in this file",
      })
      .option('keep-running', {
        type: 'boolean',
        default: false,
        describe: 'Let QEMU run to its end after --duration, --max-events or SIGTERM',
      }),
  bt: (args: Argv) => elfOption(backtraceOptions(remoteOption(args))),
  detach: (args: Argv) => elfOption(commonOptions(remoteOption(args))),
  doctor: (args: Argv) => doctorOptions(args),
  tasks: (args: Argv) => tasksOptions(args),
  types: (args: Argv) =>
    elfOption(debugFileOptions(args), 'A program with debug info')
      .positional('type', {
        type: 'string',
        demandOption: true,
        describe: 'Its path or the end of it, with generic arguments or without: exec::Task, Vec<u8>',
      })
      .option('json', { type: 'boolean', default: false, describe: 'One JSON object on stdout' }),
  futures: (args: Argv) => futuresOptions(args),
  ...savedTraceCommands,
} satisfies Record<string, Options<unknown>>;

function optionsFor(command: string | undefined): KnownOptions {
  const declare: Options<unknown> = options[(command ?? '$0') as keyof typeof options];
  return declaredOptions(declare);
}

/** Wraps a command's body: checks its files before, keeps its status after. */
type Does = <T extends FileArguments>(body: (args: T) => Promise<number>) => (args: T) => Promise<void>;

function declareCommands(args: Argv, does: Does): Argv {
  return declareSavedTraceCommands(args, does)
    .command(
      '$0 <elf>',
      'record every poll at a running stub',
      options.$0,
      does(async (args) => {
        recordsBesideStdout();
        return (await import('./record.js')).recordRemote(args);
      }),
    )
    .command('run <elf>', 'start QEMU frozen, record every poll, pass its console through', options.run, (given) =>
      does(async (args: typeof given & { readonly command: readonly string[] }) => {
        recordsBesideStdout();
        return (await import('./run.js')).recordRun(args);
      })({ ...given, command: (given['--'] as string[] | undefined) ?? [] }),
    )
    .command(
      'bt <elf>',
      "stop the target, print every hart's stack, let it go on",
      options.bt,
      does(async (args) => (await import('./bt.js')).backtrace(args)),
    )
    .command(
      'detach <elf>',
      'take out what an rsptrace that was killed has left, let the target run on',
      options.detach,
      does(async (args) => (await import('./detach.js')).detach(args)),
    )
    .command(
      'doctor [elf]',
      'what this stub and its target can do, how fast, and what would make it better',
      options.doctor,
      does(async (args) => (await import('./doctor.js')).doctor(args)),
    )
    .command(
      'tasks <elf>',
      'every task and the tree of what it awaits, in a stopped target or a dump',
      options.tasks,
      does(async (args) => (await import('./tasks.js')).showTasks(args)),
    )
    .command(
      'types <elf> <type>',
      "print a type's layout: offsets, sizes, holes, an enum's variants",
      options.types,
      does(async (args) => (await import('./types.js')).showTypes(args)),
    )
    .command(
      'futures <elf> [glob]',
      'every Future in a program: states, awaits, sizes, polls',
      options.futures,
      does(async (args) => (await import('./futures.js')).showFutures(args)),
    );
}

/** Runs a command line. Returns the exit status; throws `USAGE`, and what its command throws. */
export async function runCommandLine(words: readonly string[]): Promise<number> {
  const commands = Object.keys(options).filter((name) => name !== '$0');
  checkWords(words, commands, optionsFor);
  let status = 0;
  const does: Does = (body) => async (args) => {
    checkFiles(args);
    status = await body(args);
  };
  const parser = yargs(words)
    .scriptName('rsptrace')
    .locale('en')
    .parserConfiguration({ 'populate--': true, 'parse-positional-numbers': false })
    .usage('rsptrace: what a Rust kernel or program is doing, and why it waits, through any GDB remote stub');
  await declareCommands(parser, does)
    .example('$0 --remote :1234 kernel.elf', 'trace a guest that waits at port 1234')
    .example("$0 --remote :1234 --probe 'poll:net::*' kernel.elf", 'only the Futures of one module')
    .example(
      '$0 run kernel.elf -- qemu-system-riscv64 -M virt -nographic -kernel kernel.elf',
      'start QEMU and trace it',
    )
    .epilogue(
      'Exit status: 0 recorded; 1 failed before recording; 2 wrong usage; 3 cut short by an error, what was recorded is kept',
    )
    .version(version)
    .alias('version', 'V')
    .alias('help', 'h')
    .strict()
    .wrap(Math.min(120, process.stdout.columns ?? 120))
    .fail((message, error) => {
      // yargs wraps errors of option parsing; errors of a command arrive unchanged.
      if (error && error.name !== 'YError') throw error;
      throw usageError(message ?? error.message);
    })
    .parseAsync();
  return status;
}
