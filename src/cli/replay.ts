import { branchesIn } from '../base/short-name.js';
import { shownPlaces } from '../base/shown-place.js';
import { clipEnd } from '../base/text-width.js';
import { FromFirstEvent, Inside, type Lines, TextBytes, TreeWriter, writeJsonLines } from '../trace/index.js';
import { ExitCode } from './failure.js';
import { readChosen } from './saved-trace.js';
import type { ReplayArguments } from './saved-trace-options.js';
import { isColored, lineWidth } from './terminal.js';

/** `rsptrace replay TRACE`: what happened, as it happened. Gives the exit status. */
export async function replay(args: ReplayArguments): Promise<number> {
  const width = lineWidth();
  const fits = (line: string): string => `${clipEnd(indentedIn(width, shownPlaces(line).slice(0, -1)), width)}\n`;
  const shown = isColored() ? (line: string): string => colored(fits(line)) : fits;
  const out = new Output(args.json ? (line) => line : width === Number.POSITIVE_INFINITY ? shownPlaces : shown);
  const sink = new FromFirstEvent(() => (args.json ? writeJsonLines(out) : new TreeWriter(out)));
  await readChosen(args.trace, (chosen) => (chosen ? new Inside(sink, chosen) : sink), args);
  sink.finish();
  return ExitCode.recorded;
}

const BUFFER = 64 * 1024;
const RESET = '\x1b[0m';
/** Of harts and threads: as many as terminals tell apart on any background. */
const colors = [36, 33, 32, 35, 34, 31];

/** Standard output, in large pieces. */
class Output implements Lines {
  readonly #shown: (line: string) => string;
  #text = '';
  readonly #line = new TextBytes();

  constructor(shown: (line: string) => string) {
    this.#shown = shown;
  }

  textRecord(line: string): void {
    this.#text += this.#shown(line);
    if (this.#text.length > BUFFER) this.flush();
  }

  startText(): TextBytes {
    this.#line.startAlone();
    return this.#line;
  }

  endText(): void {
    this.textRecord(this.#line.toString());
  }

  flush(): void {
    // Nothing is kept: to a file, a pipe and a terminal of Linux this writes at once.
    process.stdout.write(this.#text);
    this.#text = '';
  }

  close(): void {
    this.flush();
  }
}

/** Deep calls keep their names in a narrow terminal: their level stands for blanks before them. */
function indentedIn(width: number, line: string): string {
  const [, before = '', blanks = '', rest = ''] = /^([^#].*?\[ ?\d+(?::\d+)?\] {2})( *)(.*)$/s.exec(line) ?? [];
  return blanks === '' ? line : `${before}${branchesIn(width / 2, blanks, blanks.length / 2)}${rest}`;
}

/** What a hart or thread does has its colour; lines about the whole trace have none. */
function colored(line: string): string {
  const [, before, track, rest] = /^(.{28}\s*)(\[ ?\d+(?::\d+)?\])(.*)\n$/s.exec(line) ?? [];
  if (track === undefined) return line;
  const number = Number(/(\d+)\]$/.exec(track)?.[1] ?? 0);
  return `${before}\x1b[${colors[number % colors.length]}m${track}${rest}${RESET}\n`;
}
