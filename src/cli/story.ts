import { RsptraceError } from '../base/errors.js';
import { plural } from '../text/index.js';
import { Choice, hasUnknownWakes, Story, storyJson, storyText, type TraceRead } from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import type { ReportArguments } from './options/saved-trace.js';
import { headJson, noMatch, readSaved } from './saved-trace.js';
import { lineWidth, printed } from './terminal.js';
import { selectionOf, type TraceFilter } from './trace-filter.js';

/** Lines of a tree without `--full` and `--top`. */
const usualLines = 200;

/** `rsptrace report TRACE --story GLOB`: all that happened for one call or Future. Gives the exit status. */
export async function reportStory(args: ReportArguments, wanted: TraceFilter): Promise<number> {
  const choice = new Choice(selectionOf(wanted), args.nth);
  await readSaved(args.trace, choice, args, () => []);
  const { number, count } = choice;
  if (count === 0) throw noMatch('--story', wanted.text, [...choice.names]);
  if (number === undefined) {
    throw new RsptraceError('TRACE_NO_MATCH', `--nth ${args.nth}: the trace has ${count} of --story '${wanted.text}'`, {
      hint: 'without --nth it is the one that took longest',
    });
  }
  const story = new Story(selectionOf(wanted), number);
  const read = await readSaved(args.trace, story, args);
  const lines = args.top ?? (args.full ? Number.POSITIVE_INFINITY : usualLines);
  printed(args, { ...headJson(args.trace, read), of: count, story: storyJson(story) }, () =>
    storyText(
      story,
      { width: args.full ? Number.POSITIVE_INFINITY : lineWidth(), unit: read.info?.isProcess ? 'thread' : 'hart' },
      lines,
    ),
  );
  if (!args.json) note(...notesOn(story, count, number, read));
  return ExitCode.recorded;
}

/** What the story cannot have. */
function notesOn(story: Story, count: number, number: number, { isOwn, info }: TraceRead): (string | false)[] {
  const { carrier, others = 0 } = story.followed ?? {};
  const isShared = (carrier?.kind === 'hart' || others > 0) && !info?.isProcess;
  return [
    count > 1 && `it is number ${number} of ${count}: --nth chooses another`,
    isOwn &&
      isShared &&
      `nothing says when its hart ran others, because the trace has no context switches: record with -p switch:${others > 0 ? `; ${plural(others, 'call')} of other processes meanwhile ${others === 1 ? 'is' : 'are'} left out` : ''}`,
    !isOwn && 'the trace was not written by rsptrace, so it has no switches, polls, wakes and locks',
    carrier?.kind === 'thread' &&
      hasUnknownWakes(story) &&
      'who ends a wait is known where calls of the function that wakes threads are traced: -p fn:try_to_wake_up of Linux, -p fn:wakeup -p fn:sleep',
  ];
}
