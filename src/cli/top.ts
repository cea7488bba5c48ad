import { basename } from 'node:path';
import { abortAtSignal, runtimesCalled, type Understood, understandFutures } from '../api/index.js';
import { type Runtime, runtimes, search } from '../async/tasks/index.js';
import { ET } from '../elf/index.js';
import { loadedElf } from '../target/index.js';
import { ExitCode, note } from './failure.js';
import { processNamed } from './local-process.js';
import { lookAt, programOf, readProgram } from './look-at.js';
import { sayWithoutWire } from './open-output.js';
import { debugFilesOf } from './options/common.js';
import { usage } from './options/option.js';
import type { TopArguments } from './options/target.js';
import { loadPlugins } from './plugins.js';
import { abortWithoutReader } from './standard-streams.js';
import { App, pause } from './top/app.js';
import { History } from './top/history.js';
import { lookJson } from './top/json.js';
import { lookAtTasks, type Taken } from './top/look.js';
import { looksContent, type Shown } from './top/pages.js';
import { type Ended, lookAtProcess, lookAtStub, type Watched } from './top/sources.js';

/**
 * `rsptrace top --pid PID [ELF]`, or `--remote ADDR kernel.elf`: the tasks of a target, looked at again and again.
 * Gives the exit status.
 */
export async function top(given: TopArguments): Promise<number> {
  if (!given.json && !(process.stdout.isTTY && process.stdin.isTTY)) {
    const which = process.stdout.isTTY ? 'input' : 'output';
    throw usage(`top draws on a terminal, and standard ${which} is none`, '--json streams a line of JSON a look');
  }
  if (given.polls) return (await import('./top-polls.js')).topPolls(given);
  const { runtimes: own } = await loadPlugins(given.plugin);
  runtimesCalled(given.runtime, [...own, ...runtimes, search]);
  const read = await readProgram({ ...given, elf: programOf(given) });
  const { args, logger, linked, arch } = read;
  const parts = { arch, logger, scan: args.scan, debugDirs: debugFilesOf(args).debugDirs };
  // What is loaded elsewhere is read again, so that is put off.
  const isMoved = linked.type === ET.DYN && linked.loadBias === 0n;
  const known = isMoved ? undefined : understandFutures(linked, logger);
  const stopper = new AbortController();
  const watch = async (
    elf: Watched['elf'],
    look: (watched: Watched, take: Takes) => Promise<Ended>,
  ): Promise<number> => {
    let program = elf === linked ? known : undefined;
    const understood = (): Understood => {
      program ??= understandFutures(elf, logger);
      return program;
    };
    const watched = { ...parts, elf, program: understood, isKnown: program !== undefined };
    const looks = new Looks(args, watched, own, stopper);
    return await looks.run((take) => look(watched, take));
  };
  if (args.pid !== undefined) {
    sayWithoutWire(args);
    const pid = processNamed(args.pid);
    return await watch(linked, (watched, take) => lookAtProcess(pid, watched, take));
  }
  const since = performance.now();
  return await lookAt(read, async (target) =>
    watch(await loadedElf(target.session, linked), (watched, take) =>
      lookAtStub({ ...target, since }, watched, take, stopper),
    ),
  );
}

/** An interval is so much shorter or longer than asked for: then looks are in step with nothing in the target. */
const SPREAD = 0.25;

type Args = TopArguments & { readonly elf: string };
type Takes = (taken: Taken) => Promise<boolean>;

/** Looks, one after the other, and what becomes of them: a screen, or a line each. */
class Looks {
  readonly #args: Args;
  readonly #watched: Watched;
  readonly #own: readonly Runtime[];
  readonly #stopper: AbortController;
  readonly #history = new History();
  readonly #app: App<ReturnType<typeof looksContent>['items'][number]> | undefined;
  #number = 0;
  #shown: Shown | undefined;

  constructor(args: Args, watched: Watched, own: readonly Runtime[], stopper: AbortController) {
    this.#args = args;
    this.#watched = watched;
    this.#own = own;
    this.#stopper = stopper;
    const app = { json: () => this.#json(), onQuit: () => stopper.abort(), ends: stopper.signal };
    this.#app = args.json ? undefined : new App(app);
  }

  async run(look: (take: Takes) => Promise<Ended>): Promise<number> {
    using _handled = abortAtSignal(this.#stopper);
    using _read = abortWithoutReader(this.#stopper);
    this.#app?.open();
    let ended: Ended;
    try {
      ended = await look((taken) => this.#take(taken));
    } finally {
      this.#app?.close();
    }
    if (ended === 'target') note('the target has ended');
    if (ended === 'exec') note('the process has begun a program anew (exec)');
    return ExitCode.recorded;
  }

  /** Shows a look, and waits until the next one is due. False: there is none. */
  async #take(taken: Taken): Promise<boolean> {
    const { runtime, looks: most, interval } = this.#args;
    const { signal } = this.#stopper;
    const options = {
      runtimes: this.#own,
      logger: this.#watched.logger,
      ...(runtime === undefined ? {} : { runtime }),
    };
    const before = this.#shown?.look.at;
    const look = await lookAtTasks(this.#watched.program(), taken, ++this.#number, options);
    const rows = this.#history.see(look);
    const rate = before === undefined ? undefined : 1000 / Math.max(1, look.at - before);
    this.#shown = { look, rows, findings: this.#history.findings(look), target: this.#target(), rate };
    if (this.#app) await this.#app.show(looksContent(this.#shown));
    else process.stdout.write(await this.#json());
    if (signal.aborted || this.#number === most) return false;
    await pause(taken.at + interval * (1 + SPREAD * (2 * Math.random() - 1)), signal);
    await this.#app?.resumed();
    return !signal.aborted;
  }

  #target(): string {
    const { pid, remote, elf } = this.#args;
    return `${pid === undefined ? remote : `process ${pid}`} (${basename(elf)})`;
  }

  async #json(): Promise<string> {
    const { look, rows, findings } = this.#shown as Shown;
    return await lookJson(this.#args.elf, look, rows, findings);
  }
}
