import type { FileHead } from '../../base/file-bytes.js';
import type { TraceSink } from '../events/events.js';
import type { OutputFile, OutputOptions } from './output/output-file.js';

/**
 * A format of trace files, with everything that other code knows about it. A new one must
 *
 *   be chosen        name, extensions, about, use: --help, errors and docs/formats.md are made of these
 *   be written       open: a TraceSink; `Lanes` makes one of a LaneWriter, where slices have to nest on timelines
 *   be recognized    recognizes: what begins like this is of this format
 */
export interface Format {
  /** Its usual name: `Perfetto`. */
  readonly name: string;
  /** In lower case. A file belongs to the longest extension that its name ends with. The first one is shown in help. */
  readonly extensions: readonly Extension[];
  /** One line: what a file holds, and for whom. */
  readonly about: string;
  /** What to do with a file, as a command: `open it in ui.perfetto.dev`. */
  readonly use: string;
  /**
   * True: events are written to the file as they come, so that a killed rsptrace leaves a trace. False: the end
   * writes it, or makes what was written readable.
   */
  readonly isAppended: boolean;
  /** Makes one record of a block of whole ones, so that long files are smaller. */
  readonly packing?: OutputOptions['packing'];
  /** It has a place for the samples of a profile: as they came, or only merged by their stacks. */
  readonly holdsSamples?: 'each' | 'merged';
  /** Whether a file begins like one of this format, whichever tool has written it. */
  readonly recognizes: (head: FileHead) => boolean;
  /** Writes events into a file, which the sink's `end` closes. Throws the reason why the file cannot be written. */
  readonly open?: ((file: OutputFile) => TraceSink) | undefined;
  /** For a format that is a folder of files, instead of `open`. `isForced`: whatever is there may be overwritten. */
  readonly openFolder?: ((path: string, isForced: boolean) => TraceSink) | undefined;
}

/** With its dot. It may have several parts: `.speedscope.json`. */
export type Extension = `.${string}`;
