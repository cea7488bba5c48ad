import { readFileSync } from 'node:fs';
import yargs, { type Argv } from 'yargs';
import { checkWords } from './check-words.js';
import { type Command, command } from './command.js';
import { ExitCode } from './failure.js';
import type { SettingsTaken, Table } from './options/option.js';
import * as own from './options/own.js';
import * as recording from './options/recording.js';
import * as saved from './options/saved-trace.js';
import * as target from './options/target.js';
import { withSettings } from './settings/index.js';
import { keptStandardInput, recordsBesideStdout } from './standard-streams.js';
import { sizeOf } from './terminal-size.js';
import { usageError } from './usage-error.js';

/** The commands that ask a saved trace. */
const savedTraceCommands: Readonly<Record<string, Command>> = {
  report: command(saved.report, async (args) => (await import('./report.js')).report(args), saved.checkReport),
  info: command(saved.info, async (args) => (await import('./info.js')).info(args)),
  replay: command(saved.replay, async (args) => (await import('./replay.js')).replay(args)),
  graph: command(
    saved.graph,
    async (args) => {
      const { fn, trace } = args;
      if (fn !== undefined) return (await import('./live-graph.js')).liveGraph({ ...args, fn });
      return (await import('./graph.js')).graph({ ...args, trace: trace as string });
    },
    saved.checkGraph,
  ),
  convert: command(saved.convert, async (args) => (await import('./convert.js')).convert(args)),
  recover: command(saved.recover, async (args) => (await import('./recover.js')).recover(args)),
  dump: command(saved.dump, async (args) => (await import('./dump.js')).dump(args)),
  check: command(saved.check, async (args) => (await import('./check.js')).check(args)),
  diff: command(saved.diff, async (args) => (await import('./diff.js')).diff(args), saved.checkDiff),
  merge: command(saved.merge, async (args) => (await import('./convert.js')).merge(args), saved.checkMerge),
  open: command(saved.open, async (args) => (await import('./open.js')).open(args)),
};

/** '$0' is the one without a name. */
const commands: Readonly<Record<string, Command>> = {
  ...savedTraceCommands,
  $0: command(recording.record, async (args) => {
    recordsBesideStdout();
    return (await import('./record.js')).recordRemote(args);
  }),
  run: command(recording.run, async (args) => {
    recordsBesideStdout();
    return (await import('./run.js')).recordRun(args);
  }),
  profile: command(
    target.profile,
    async (args) => {
      const { elf } = args;
      if (args['off-cpu'] && elf !== undefined) return (await import('./report.js')).offCpu({ ...args, elf });
      recordsBesideStdout();
      return (await import('./profile.js')).profileTarget(args);
    },
    target.checkProfile,
  ),
  attach: command(recording.attach, async (args) => {
    recordsBesideStdout();
    return (await import('./process.js')).recordAttached(args);
  }),
  bt: command(target.bt, async (args) => (await import('./bt.js')).backtrace(args), target.checkBt),
  detach: command(target.detach, async (args) => (await import('./detach.js')).detach(args)),
  doctor: command(target.doctor, async (args) => (await import('./doctor.js')).doctor(args)),
  tasks: command(
    target.tasks,
    async (args) =>
      args.at === undefined
        ? (await import('./tasks.js')).showTasks(args)
        : (await import('./tasks-at.js')).tasksAt({ ...args, trace: args.elf as string, at: args.at }),
    target.checkTasks,
  ),
  top: command(target.top, async (args) => (await import('./top.js')).top(args), target.checkTop),
  completion: command(
    own.completion,
    async (args) => (await import('./completion.js')).printCompletion(args),
    own.checkCompletion,
  ),
  help: command(own.help, async (args) => (await import('./help.js')).showHelp(args)),
  mcp: command(own.mcp, async (args) => (await import('./mcp.js')).serveTools(args)),
  types: command(target.types, async (args) => (await import('./types.js')).showTypes(args)),
  futures: command(
    target.futures,
    async (args) => (await import('./futures.js')).showFutures(args),
    target.checkFutures,
  ),
};

/** A command; of `undefined`, rsptrace without one. */
export function commandOf(name: string | undefined): Command {
  return commands[name ?? '$0'] as Command;
}

/** The options of a command; of `undefined`, those of rsptrace without one. */
export function optionsOf(name: string | undefined): Table {
  return commandOf(name).options;
}

/** The commands that have a name. */
export const commandNames: readonly string[] = Object.keys(commands).filter((name) => name !== '$0');

/** What settings may have: `record` is rsptrace without a command. */
export function settingsTables(): Readonly<Record<string, Table>> {
  const { $0: record, ...named } = commands;
  return Object.fromEntries(Object.entries({ record, ...named }).map(([name, one]) => [name, one?.options ?? {}]));
}

/** Runs a command line. Returns the exit status; throws `USAGE`, and what its command throws. */
export async function runCommandLine(words: readonly string[]): Promise<number> {
  const asked = checkWords(words, commandNames, optionsOf);
  const { command: name, asksHelp, rest, standardInputAt } = asked;
  if (asksHelp) {
    await (await withHelp(words, Math.min(120, sizeOf(process.stdout).columns ?? 120))).parseAsync();
    return ExitCode.recorded;
  }
  let run = async (_?: SettingsTaken): Promise<number> => ExitCode.recorded;
  // Alone and without its name, because yargs lays out the help of a command with a name before that runs.
  // What reads a trace wants a file, as the parts of one are read in any order.
  const isRead = standardInputAt >= 0 && name !== undefined && name in savedTraceCommands;
  const given = isRead ? rest.with(standardInputAt, await keptStandardInput()) : rest;
  const filled = await withSettings(asked, given, commandOf(name), settingsTables);
  const parser = commands[name ?? '$0']?.declare(parserOf(filled.words, name), '$0', (body) => {
    run = body;
  });
  await parser?.parseAsync();
  return await run(filled.settings);
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
  for (const [name, each] of Object.entries(commands)) each.declare(parser, name, () => {}, listTexts);
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

/** That of the package. */
export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};
