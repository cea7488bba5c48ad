import { branchesIn, clipEnd, shownPlaces } from '../text/index.js';
import {
  FromFirstEvent,
  type LineParts,
  type Lines,
  type TextPart,
  TreeWriter,
  wholeText,
  writeJsonLines,
} from '../trace/index.js';
import { ExitCode } from './failure.js';
import type { SavedPartArguments } from './options/saved-trace.js';
import { chosenInto, readChosen } from './saved-trace.js';
import { isColored, LargePieces, lineWidth } from './terminal.js';

/** `rsptrace replay TRACE`: what happened, as it happened. Gives the exit status. */
export async function replay(args: SavedPartArguments): Promise<number> {
  const out = new Output(args.json ? (line) => line : shownIn(lineWidth(), isColored()));
  const sink = new FromFirstEvent(() => (args.json ? writeJsonLines(out) : new TreeWriter(out)));
  await readChosen(args.trace, chosenInto(sink), { ...args, isPrinted: true });
  sink.finish();
  return ExitCode.recorded;
}

const RESET = '\x1b[0m';
/** Of harts and threads: as many as terminals distinguish on any background. */
const colors = [36, 33, 32, 35, 34, 31];

/** A line with its break; `parts`: of a hart or thread, and not of the whole trace. */
type Shown = (line: string, parts?: LineParts) => string;

/** Lines on standard output. */
class Output extends LargePieces implements Lines {
  readonly #shown: Shown;

  constructor(shown: Shown) {
    super();
    this.#shown = shown;
  }

  textRecord(line: string | readonly TextPart[], parts?: LineParts): void {
    this.write(this.#shown(wholeText(line), parts));
  }

  close(): void {
    this.flush();
  }
}

/** How lines are shown: in a terminal they fit, and what a hart or thread does has its colour. */
function shownIn(width: number, isColored: boolean): Shown {
  const isEndless = width === Number.POSITIVE_INFINITY;
  if (isEndless && !isColored) return shownPlaces;
  return (line, parts) => {
    const whole = shownPlaces(line).slice(0, -1);
    const fits = isEndless ? whole : clipEnd(parts === undefined ? whole : indentedIn(width, whole, parts), width);
    return `${isColored && parts !== undefined ? colored(fits, parts) : fits}\n`;
  };
}

/** Deep calls keep their names in a narrow terminal: their level stands for blanks before them. */
function indentedIn(width: number, line: string, { text, level }: LineParts): string {
  const begin = text - 2 * level;
  return `${line.slice(0, begin)}${branchesIn(width / 2, line.slice(begin, text), level)}${line.slice(text)}`;
}

function colored(line: string, { track, number }: LineParts): string {
  return `${line.slice(0, track)}\x1b[${colors[number % colors.length]}m${line.slice(track)}${RESET}`;
}
