import { basename } from 'node:path';
import type { Progress } from '../record/index.js';
import { jsonLine, plural } from '../text/index.js';
import { ExitCode, note, reportError } from './failure.js';
import { liveTarget, unkept } from './live-target.js';
import type { TopArguments } from './options/target.js';
import { withRecording } from './recording/prepare.js';
import type { Recorded, RecordingWatcher } from './recording/session.js';
import { abortWithoutReader } from './standard-streams.js';
import { App, pause } from './top/app.js';
import { LivePolls } from './top/live-polls.js';
import { type PollsShown, pollsContent } from './top/polls-pages.js';

/**
 * `rsptrace top --polls --pid PID [ELF]`, or `--remote ADDR kernel.elf`: the polls of each task, as they are recorded
 * without stops. Gives the exit status.
 */
export async function topPolls(given: TopArguments): Promise<number> {
  const target = liveTarget(given);
  const args = { ...given, elf: target.elf };
  const live = new LivePolls();
  const view = new PollsView(args, live);
  // What would stop the target is left out. Nothing is on stderr while the screen is there.
  const only = { engine: 'target', wakes: 'auto', json: true, progress: !args.json } as const;
  const asked = { ...unkept, ...args, ...only };
  return await withRecording(
    asked,
    async (prepared) => {
      const recorded = target.record(prepared, asked, { ending: view.ending, watcher: view });
      return view.ends(await view.during(recorded));
    },
    target.place,
    () => live,
  );
}

/** Shows what is recorded: on a screen, or a line of JSON a window of time. */
class PollsView implements RecordingWatcher {
  readonly #args: TopArguments & { readonly elf: string };
  readonly #live: LivePolls;
  readonly #stopper = new AbortController();
  readonly #notes: string[] = [];
  readonly #app: App<ReturnType<typeof pollsContent>['items'][number]> | undefined;
  #shown: PollsShown | undefined;
  #number = 0;
  #showing: Promise<void> | undefined;

  constructor(args: TopArguments & { readonly elf: string }, live: LivePolls) {
    this.#args = args;
    this.#live = live;
    const app = { json: async () => this.#json(), onQuit: () => this.#quit(), ends: this.ending };
    this.#app = args.json ? undefined : new App(app);
  }

  /** Ends the recording. */
  get ending(): AbortSignal {
    return this.#stopper.signal;
  }

  text(text: string): void {
    const sentences = text.trimEnd().replace(/^rsptrace: /, '');
    if (sentences !== '') this.#notes.push(...sentences.split('\n').map((line) => line.trim()));
  }

  begins(progress: () => Progress): void {
    this.#app?.open();
    this.#showing = this.#show(progress);
  }

  async during(recorded: Promise<Recorded>): Promise<Recorded> {
    using _read = abortWithoutReader(this.#stopper);
    try {
      return await recorded;
    } finally {
      this.#quit();
      await this.#showing;
    }
  }

  /** The exit status. */
  ends({ end, error, events, stops }: Recorded): number {
    // What came since the last line.
    this.#look({ stops, undigested: 0 });
    if (this.#args.json) process.stdout.write(this.#json());
    if (end === 'guest-ended') note('the target has ended');
    note(`${plural(events, 'event')}, ${plural(stops, 'stop')}`);
    if (error === undefined) return ExitCode.recorded;
    reportError(error);
    return ExitCode.cutShort;
  }

  #quit(): void {
    this.#app?.close();
    this.#stopper.abort();
  }

  async #show(progress: () => Progress): Promise<void> {
    const { interval, looks } = this.#args;
    while (!this.ending.aborted) {
      await pause(Date.now() + interval, this.ending);
      await this.#app?.resumed();
      if (this.ending.aborted) return;
      this.#look(progress());
      if (this.#app) await this.#app.show(pollsContent(this.#shown as PollsShown));
      else process.stdout.write(this.#json());
      if (this.#number === looks) this.#stopper.abort();
    }
  }

  #look({ stops, undigested }: Pick<Progress, 'stops' | 'undigested'>): void {
    const waiting = undigested;
    this.#shown = { ...this.#live.window(), target: this.#target(), stops, waiting, notes: this.#notes };
    this.#number++;
  }

  #target(): string {
    const { pid, remote, elf } = this.#args;
    return `${pid === undefined ? remote : `process ${pid}`} (${basename(elf)})`;
  }

  #json(): string {
    const { ns, events, stops, waiting, tasks, ended, notes } = this.#shown as PollsShown;
    return jsonLine({
      ...{ version: 1, program: this.#args.elf, look: this.#number, at: new Date().toISOString(), window_ns: ns },
      ...{ events, stops, waiting, notes, ended, tasks: tasks.map(({ history: _, ...row }) => row) },
    });
  }
}
