import type { FileHead } from '../../base/file-head.js';
import type { TraceSink } from '../events.js';
import type { OutputFile } from '../output-file.js';

/**
 * A format of trace files: all that is known of it outside its own file. A new one has to
 *
 *   be chosen        name, extensions, about, use: --help, errors and docs/formats.md are made of these
 *   be written       open: a TraceSink; `Lanes` makes one of a LaneWriter, where slices have to nest on timelines
 *   be overwritten   recognizes: a file of this format is replaced without --force
 */
export interface Format {
  /** As people call it: `Perfetto`. */
  readonly name: string;
  /** In lower case. A file belongs to the longest one that its name ends with. The first is the one to advertise. */
  readonly extensions: readonly Extension[];
  /** One line: what a file holds, and for whom. */
  readonly about: string;
  /** What to do with a file, as a command: `open it in ui.perfetto.dev`. */
  readonly use: string;
  /** True: events go to the file as they come, so that a killed rsptrace leaves a trace. False: the end writes it. */
  readonly isAppended: boolean;
  /** Whether a file begins like one of this format, whichever tool has written it. */
  readonly recognizes: (head: FileHead) => boolean;
  /** Writes events into a file, which the sink's `end` closes. Throws what keeps it from writing. */
  readonly open: (file: OutputFile) => TraceSink;
}

/** With its dot. It may have several parts: `.speedscope.json`. */
export type Extension = `.${string}`;
