import { readFileSync } from 'node:fs';
import { type Command, command } from './command.js';
import { askedBy } from './command-words.js';
import { ExitCode } from './failure.js';
import type { Table } from './options/option.js';
import * as recording from './options/recording.js';
import * as saved from './options/saved-trace.js';
import * as target from './options/target.js';
import { keptStandardInput, recordsBesideStdout } from './standard-streams.js';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

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
  diff: command(saved.diff, async (args) => (await import('./diff.js')).diff(args)),
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
      if (args['off-cpu'] && elf !== undefined) return (await import('./off-cpu.js')).offCpu({ ...args, elf });
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
  types: command(target.types, async (args) => (await import('./types.js')).showTypes(args)),
  futures: command(
    target.futures,
    async (args) => (await import('./futures.js')).showFutures(args),
    target.checkFutures,
  ),
};

/** The options of a command; of `undefined`, those of rsptrace without one. */
export function optionsOf(command: string | undefined): Table {
  return commands[command ?? '$0']?.options ?? {};
}

/** The commands that have a name. */
export const commandNames: readonly string[] = Object.keys(commands).filter((name) => name !== '$0');

/** Runs a command line. Returns the exit status; throws `USAGE`, and what its command throws. */
export async function runCommandLine(words: readonly string[]): Promise<number> {
  const asked = askedBy(words, commandNames, optionsOf);
  const { command: name, given, plain } = asked;
  if (given.get('help')?.at(-1) === 'true') {
    const { helpText } = await import('./help.js');
    process.stdout.write(helpText(name, commands, Math.min(120, process.stdout.columns ?? 120)));
    return ExitCode.recorded;
  }
  if (given.get('version')?.at(-1) === 'true') {
    process.stdout.write(`${version}\n`);
    return ExitCode.recorded;
  }
  // What reads a trace wants a file, as the parts of one are read in any order.
  const at = name !== undefined && name in savedTraceCommands ? plain.indexOf('-') : -1;
  const files = at < 0 ? plain : plain.with(at, await keptStandardInput());
  return (await commands[name ?? '$0']?.run({ ...asked, plain: files })) ?? ExitCode.recorded;
}
