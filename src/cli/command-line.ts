import { readFileSync } from 'node:fs';
import yargs, { type Argv } from 'yargs';
import { backtraceOptions } from './bt-options.js';
import { checkWords, declaredOptions, type KnownOptions } from './check-words.js';
import { type Command, command } from './command.js';
import { doctorOptions } from './doctor-options.js';
import { ExitCode } from './failure.js';
import { futuresOptions } from './futures-options.js';
import { guestOptions } from './guest-options.js';
import { noTexts } from './option-texts.js';
import { commonOptions, debugFileOptions, last, reconnectOption, recordingOptions, remoteOption } from './options.js';
import { profileOptions } from './profile-options.js';
import { savedTraceCommands } from './saved-trace-commands.js';
import { recordsBesideStdout } from './standard-streams.js';
import { tasksOptions } from './tasks-options.js';
import { usageError } from './usage-error.js';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const elfOption = <T>(args: Argv<T>, describe = 'The ELF that runs there') =>
  args.positional('elf', { type: 'string', demandOption: true, describe });

const withDebugInfo = 'The ELF that runs there, with debug info';

/** '$0' is the one without a name. */
const commands: Readonly<Record<string, Command>> = {
  ...savedTraceCommands,
  $0: command(
    '<elf>',
    'record every poll at a running stub',
    (args, texts) => elfOption(reconnectOption(recordingOptions(remoteOption(args), texts)), withDebugInfo),
    async (args) => {
      recordsBesideStdout();
      return (await import('./record.js')).recordRemote(args);
    },
  ),
  run: command(
    '[elf]',
    'start a program, or QEMU frozen, and record every poll',
    (args, texts) =>
      guestOptions(recordingOptions(args, texts))
        .positional('elf', { type: 'string', describe: `${withDebugInfo}. Default: what -kernel names` })
        .usage(
          'rsptrace run [options] <program> [-- its arguments]\n       rsptrace run [options] [elf] -- qemu-system-... [its arguments]',
        )
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
    async (args) => {
      recordsBesideStdout();
      return (await import('./run.js')).recordRun(args);
    },
  ),
  profile: command(
    '[elf]',
    'what the target spends its time with, by samples of every stack',
    (args, texts) =>
      profileOptions(args, texts).positional('elf', {
        type: 'string',
        describe: 'The program, or the ELF that runs there',
      }),
    async (args) => {
      const { elf } = args;
      if (args['off-cpu'] && elf !== undefined) return (await import('./off-cpu.js')).offCpu({ ...args, elf });
      recordsBesideStdout();
      return (await import('./profile.js')).profileTarget(args);
    },
  ),
  attach: command(
    '<pid> [elf]',
    'record a process that runs on this machine, under a gdbserver of its own',
    (args, texts) =>
      recordingOptions(args, texts)
        .positional('pid', { type: 'string', demandOption: true, describe: 'The number of the process' })
        .positional('elf', { type: 'string', describe: 'Its program with debug info, if it runs a stripped one' }),
    async (args) => {
      recordsBesideStdout();
      return (await import('./process.js')).recordAttached(args);
    },
  ),
  bt: command(
    '[elf]',
    "stop the target, print every hart's or thread's stack, let it go on",
    backtraceOptions,
    async (args) => (await import('./bt.js')).backtrace(args),
  ),
  detach: command(
    '<elf>',
    'take out what an rsptrace that was killed has left, let the target run on',
    (args) => elfOption(commonOptions(remoteOption(args))),
    async (args) => (await import('./detach.js')).detach(args),
  ),
  doctor: command(
    '[elf]',
    'what this stub and its target can do, how fast, and what would make it better',
    doctorOptions,
    async (args) => (await import('./doctor.js')).doctor(args),
  ),
  tasks: command(
    '[elf]',
    'every task and the tree of what it awaits: in a target, a dump, or a saved trace',
    tasksOptions,
    async (args) =>
      args.at === undefined
        ? (await import('./tasks.js')).showTasks(args)
        : (await import('./tasks-at.js')).tasksAt({ ...args, trace: args.elf as string, at: args.at }),
  ),
  types: command(
    '<elf> <type>',
    "print a type's layout: offsets, sizes, holes, an enum's variants",
    (args) =>
      elfOption(debugFileOptions(args), 'A program with debug info')
        .positional('type', {
          type: 'string',
          demandOption: true,
          describe: 'Its path or the end of it, with generic arguments or without: exec::Task, Vec<u8>',
        })
        .option('json', { type: 'boolean', default: false, describe: 'One JSON object on stdout' }),
    async (args) => (await import('./types.js')).showTypes(args),
  ),
  futures: command(
    '<elf> [glob]',
    'every Future in a program: states, awaits, sizes, polls',
    futuresOptions,
    async (args) => (await import('./futures.js')).showFutures(args),
  ),
};

/** The commands that have a name. */
export const commandNames: readonly string[] = Object.keys(commands).filter((name) => name !== '$0');

function optionsFor(name: string | undefined): KnownOptions {
  return declaredOptions((args) => commands[name ?? '$0']?.options(args, noTexts));
}

/** Runs a command line. Returns the exit status; throws `USAGE`, and what its command throws. */
export async function runCommandLine(words: readonly string[]): Promise<number> {
  const { command: name, asksHelp, rest } = checkWords(words, commandNames, optionsFor);
  if (asksHelp) {
    await (await withHelp(words, Math.min(120, process.stdout.columns ?? 120))).parseAsync();
    return ExitCode.recorded;
  }
  let run = async (): Promise<number> => ExitCode.recorded;
  // Alone and without its name, because yargs lays out the help of a command with a name before that runs.
  const parser = commands[name ?? '$0']?.declare(parserOf(rest, name), '$0', noTexts, (body) => {
    run = body;
  });
  await parser?.parseAsync();
  return await run();
}

/** The help of a command, or of rsptrace, in lines of `width` columns. */
export async function helpText(name: string | undefined, width: number): Promise<string> {
  return await (await withHelp(name === undefined ? [] : [name], width)).getHelp();
}

async function withHelp(words: readonly string[], width: number): Promise<Argv> {
  const { listTexts } = await import('./list-texts.js');
  const parser = parserOf(words)
    .usage('rsptrace: what a Rust kernel or program is doing, and why it waits, through any GDB remote stub')
    .example('$0 --remote :1234 kernel.elf', 'trace a guest that waits at port 1234')
    .example("$0 --remote :1234 --probe 'poll:net::*' kernel.elf", 'only the Futures of one module')
    .example(
      '$0 run kernel.elf -- qemu-system-riscv64 -M virt -nographic -kernel kernel.elf',
      'start QEMU and trace it',
    )
    .epilogue(
      'Exit status: 0 recorded; 1 failed before recording; 2 wrong usage; 3 cut short by an error, what was recorded is kept; 4 a budget, or a limit of --fail-on or --findings error, is broken; 5 the guest failed',
    )
    .wrap(width);
  for (const [name, each] of Object.entries(commands)) each.declare(parser, name, listTexts, () => {});
  return parser;
}

function parserOf(words: readonly string[], command?: string): Argv {
  return yargs(words)
    .scriptName('rsptrace')
    .locale('en')
    .parserConfiguration({ 'populate--': true, 'parse-positional-numbers': false })
    .version(version)
    .alias('version', 'V')
    .alias('help', 'h')
    .strict()
    .fail((message, error) => {
      // yargs wraps errors of option parsing; errors of a command arrive unchanged.
      if (error && error.name !== 'YError') throw error;
      throw usageError(message ?? error.message, command, commands[command ?? '$0']?.positionals);
    });
}
