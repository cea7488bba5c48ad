import { compileGlob } from '../../probes/index.js';
import { shownFile } from '../../text/index.js';
import { placeText, type TaskRow, TaskSummary } from '../../trace/index.js';
import { below, objectAt } from '../json.js';
import { type Bounds, boundsAt, boundsText, nearBound } from '../limits.js';
import type { SectionKind, Verdict } from '../section.js';

/** `"alive": { "**": 0 }`: tasks of that name that have not ended when the trace ends. */
export const alive: SectionKind = {
  key: 'alive',
  proposed: ({ tasks }) => (tasks.length === 0 ? undefined : { '**': 0 }),
  parse(value, at) {
    const wanted = Object.entries(objectAt(value, at)).map(([glob, given]) => ({
      glob,
      matches: compileGlob(glob),
      bounds: boundsAt(given, below(at, glob)),
    }));
    const tasks = new TaskSummary();
    /** Of many tasks that have ended some have no row. */
    const names = new Set<string>();
    const living = (matches: (name: string) => boolean): TaskRow[] =>
      tasks.rows().filter((row) => isAlive(row) && matches(row.future));
    return {
      event: (event) => {
        tasks.event(event);
        if (event.type === 'poll-begin') names.add(event.root.future.future);
      },
      verdicts: ({ lacks }) =>
        wanted.map(({ glob, matches, bounds }) => {
          const isSeen = [...names].some(matches);
          return verdict(glob, bounds, living(matches), isSeen, lacks);
        }),
      updated: () => Object.fromEntries(wanted.map(({ glob, matches }) => [glob, living(matches).length])),
    };
  },
};

function isAlive({ state, ended_ns }: TaskRow): boolean {
  return ended_ns === null && (state === 'waiting' || state === 'running' || state === 'unknown');
}

const mostNamed = 3;

function verdict(glob: string, bounds: Bounds, rows: readonly TaskRow[], isSeen: boolean, lacks: string): Verdict {
  const { length: count } = rows;
  const isKept = count >= bounds.min && count <= bounds.max;
  const named = rows.slice(0, mostNamed).map((row) => {
    const waits = row.await && shownFile(placeText({ file: row.await.file, line: row.await.line ?? undefined }) ?? '');
    return `${row.future} ${row.state}${waits ? ` at ${waits}` : ''}`;
  });
  const more = count > mostNamed ? `, and ${count - mostNamed} more` : '';
  const [first] = rows;
  const where = first && (first.await ?? { file: first.file, line: first.line });
  return {
    ...{ section: 'alive', subject: glob },
    // The last poll of a task may be what is missing.
    state: lacks !== '' ? 'unseen' : !isKept ? 'broken' : isSeen ? 'kept' : 'unseen',
    limit: `${boundsText(bounds)} at the end`,
    measured: isSeen
      ? `${count}${count > 0 ? `: ${named.join(', ')}${more}` : ''}${lacks && `, but ${lacks}`}`
      : 'no task of the trace has this name',
    ...{ bound: nearBound(bounds, count), value: count },
    place: where && { file: where.file ?? undefined, line: where.line ?? undefined },
  };
}
