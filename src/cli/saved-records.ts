import { RsptraceError } from '../base/errors.js';
import { type InputObserver, KeptRecords, type Recovered } from '../record/index.js';
import { plural } from '../text/index.js';
import type { TraceSink } from '../trace/index.js';
import { createLogger } from './logging.js';
import { type LoadedPlugins, loadPlugins } from './plugins.js';
import { engineOf, needsReturns, preparedProgram, untilOf } from './recording/asked.js';
import { askedOf } from './records-file.js';

/** A file of records, and what its recording was asked for: out of it come the events. */
export class SavedRecords implements Disposable {
  readonly #kept: KeptRecords;
  readonly asked: ReturnType<typeof askedOf>;
  readonly plugins: LoadedPlugins;
  readonly #log: string | undefined;

  private constructor(kept: KeptRecords, plugins: LoadedPlugins, log: string | undefined) {
    this.#kept = kept;
    this.asked = askedOf(kept.asked);
    this.plugins = plugins;
    this.#log = log;
  }

  /**
   * `plugin`: the plug-ins of the recording, which the command line names again, because a file may not have code
   * loaded.
   * @throws RsptraceError `RECORDS_MISSING`, `RECORDS_DAMAGED`; `RECORDS_MISMATCH` for fewer plug-ins
   */
  static async open(path: string, plugin: readonly string[] = [], log?: string): Promise<SavedRecords> {
    const kept = new KeptRecords(path);
    try {
      const { plugins } = askedOf(kept.asked);
      const loaded = await loadPlugins(plugin);
      if (plugins <= plugin.length) return new SavedRecords(kept, loaded, log);
      throw new RsptraceError('RECORDS_MISMATCH', `it was recorded with ${plural(plugins, 'plug-in')}`, {
        hint: 'give the same files with --plugin',
      });
    } catch (error) {
      kept.close();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#kept.close();
  }

  /** Gives the sink every event. Throws as {@link KeptRecords.recover}. */
  async read(sink: TraceSink, inputs?: InputObserver): Promise<Recovered> {
    const { asked } = this;
    const logger = createLogger(this.#log);
    const program = await preparedProgram(asked, this.plugins, logger);
    return await this.#kept.recover({
      ...{ program, sink, logger, engine: engineOf(asked), returns: needsReturns(asked) },
      functions: { values: asked.args, maxDepth: asked['max-depth'] },
      ...{ thresholdNs: asked.threshold, stackDepth: asked.bt, until: untilOf(asked, program) },
      ...(inputs && { inputs }),
    });
  }
}
