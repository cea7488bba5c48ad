import type { ProbeCode } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { isRefusal, messageOf, type Refusal, RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import {
  codeRoom,
  findThreadWords,
  middleOf,
  processMemory,
  type TrampolineOverhead,
  whyProcessStops,
} from '../inject/index.js';
import { ProvenScratch, type Scratch } from '../scratch/index.js';
import type { StopEngine } from '../stop/index.js';
import { changesItsCode, guestsRunIt, hasGuests } from '../target/index.js';
import { unavailable } from './engine-choice.js';
import type { EnginesOptions } from './engines-options.js';
import { Installed } from './installed.js';
import type { InstallRequest } from './placing.js';
import type { ProbeChoices } from './probe-choices.js';

/**
 * Installs trampolines as soon as the target has memory and code for them. Where it never will, all probes fall back
 * to stops.
 */
export class Installer {
  readonly #options: EnginesOptions;
  readonly #choices: ProbeChoices;
  readonly #logger: Logger;
  readonly memory: ProvenScratch;

  constructor(options: EnginesOptions, choices: ProbeChoices, logger: Logger) {
    this.#options = options;
    this.#choices = choices;
    this.#logger = logger;
    this.memory = new ProvenScratch(options.isRepeatable);
  }

  /** `early` if it is too early in the program; undefined if there can be none. */
  async install(
    code: ProbeCode,
    stops: StopEngine,
    earlierTime: TrampolineOverhead | undefined,
  ): Promise<Installed | 'early' | undefined> {
    const ready = await this.#prepare();
    if (ready === undefined) return 'early';
    if (isRefusal(ready)) return this.fallBack(ready.refused);
    try {
      const options = this.#options;
      return await Installed.install({ ...ready, options, choices: this.#choices, code, stops, earlierTime });
    } catch (thrown) {
      this.#fallBackAfter(thrown);
      const { session, wanted } = this.#options;
      if (session.state.kind === 'gone' || wanted === 'target' || !(thrown instanceof RsptraceError)) throw thrown;
      return undefined;
    }
  }

  /**
   * No probe can do without stops. This is final for this program.
   * @throws RsptraceError `ENGINE_UNAVAILABLE` if the engine without stops is asked for
   */
  fallBack(why: string): undefined {
    this.#fallBackTo(why);
    if (this.#options.wanted === 'target') throw unavailable(why);
  }

  /** What an installation needs from the target; undefined if it is too early. */
  async #prepare(): Promise<Pick<InstallRequest, 'scratch' | 'threads'> | Refusal | undefined> {
    const { session, inProcess, elf, arch, letRun } = this.#options;
    const stopsOnly = inProcess && whyProcessStops(session);
    if (stopsOnly) return { refused: stopsOnly };
    if (!inProcess && (await hasGuests(session, elf, arch))) return { refused: guestsRunIt };
    const threads = inProcess && (await findThreadWords(session));
    if (inProcess && threads === undefined) return undefined;
    if (threads && isRefusal(threads)) return threads;
    this.#choices.retry();
    if (changesItsCode(elf)) await this.#choices.planAnew(session);
    if (!inProcess) await this.#choices.refuseUserCode(session);
    const text = middleOf(this.#choices.plan.sites);
    if (text === undefined) return { refused: this.#choices.why(0) ?? 'no function can be patched' };
    await letRun?.();
    const scratch = await this.#takeScratch(text);
    return scratch === undefined || isRefusal(scratch) ? scratch : { scratch, threads };
  }

  /** Undefined if it is too early. */
  async #takeScratch(text: Addr): Promise<Scratch | Refusal | undefined> {
    const { session, arch, elf, inProcess, scratch, ram } = this.#options;
    const { plan } = this.#choices;
    const process = inProcess && processMemory(plan);
    const target = { session, arch, elf, text, ram, process, logger: this.#logger };
    try {
      return await this.memory.take({ ...scratch, ...target, codeSize: codeRoom(plan.sites) });
    } catch (thrown) {
      this.#fallBackAfter(thrown);
      throw thrown;
    }
  }

  /** A session that has ended says nothing of the target: no probe is refused for that. */
  #fallBackAfter(thrown: unknown): void {
    const { state } = this.#options.session;
    if (state.kind === 'gone') throw state.reason ?? thrown;
    this.#fallBackTo(messageOf(thrown));
  }

  #fallBackTo(why: string): void {
    this.#logger.info({ why }, 'no probe can do without stops');
    this.#choices.refuseAll(why);
  }
}
