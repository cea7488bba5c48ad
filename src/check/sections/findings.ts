import { nearestWords } from '../../base/search.js';
import {
  calledOf,
  disturbanceOf,
  type Finding,
  type FindingKind,
  Findings,
  findingText,
  TaskSummary,
} from '../../trace/index.js';
import { below, invalid, type Json, listAt, objectAt, textAt } from '../json.js';
import { timeAt, timeJson } from '../limits.js';
import type { Ending, SectionKind, Verdict } from '../section.js';

const kinds = Object.keys({
  'long-poll': true,
  'self-wake-loop': true,
  'woken-not-polled': true,
  panicked: true,
  'dropped-pending': true,
  'large-future': true,
  deadlock: true,
  'likely-deadlock': true,
  'lost-wake': true,
} satisfies Readonly<Record<Exclude<FindingKind, 'idle-polls'>, true>>);

/** `"findings": { "allow": ["large-future"], "long_poll": "10ms" }`: all other findings are errors. */
export const findings: SectionKind = {
  key: 'findings',
  proposed: ({ tasks, functions }) => (tasks.length === 0 && functions.length > 0 ? undefined : { allow: [] }),
  parse(value, at) {
    const { allow = [], long_poll: longPoll } = objectAt(value, at, ['allow', 'long_poll']);
    const allowed = new Set(
      listAt(allow, below(at, 'allow')).map((kind, i) => kindAt(kind, below(below(at, 'allow'), i))),
    );
    const longPollNs = longPoll === undefined ? undefined : timeAt(longPoll, below(at, 'long_poll'));
    const tasks = new TaskSummary();
    const search = new Findings({ longPollNs });
    // Where stops took time, findings about time are made of it; as at the end of a recording.
    const timesOf = ({ facts }: Ending) => {
      const disturbance = disturbanceOf(facts);
      return { ...disturbance, isTimed: disturbance !== undefined || longPollNs !== undefined };
    };
    // A trace does not say whether every wake was seen, so idle polls are not among these.
    const found = (end: Ending): readonly Finding[] =>
      search.all(tasks.rows(), { ...timesOf(end), seesWakes: false }, (root) => tasks.numberOf(root));
    return {
      event: (event) => {
        tasks.event(event);
        search.event(event);
      },
      verdicts: (end) => {
        const bad = found(end).filter(({ kind }) => !allowed.has(kind));
        if (bad.length > 0) return bad.map(verdict);
        const limit = allowed.size === 0 ? 'none' : `none but ${[...allowed].join(', ')}`;
        const unsure = tasks.rows().length === 0 ? 'no task is in the trace' : end.lacks;
        const state = unsure === '' ? 'kept' : 'unseen';
        const aside = search.leftOut(timesOf(end));
        const without = aside === 0 ? '' : `, without ${aside} about long polls or waits, in which tracing took time`;
        return [{ section: 'findings', subject: 'findings', state, limit, measured: (unsure || 'none') + without }];
      },
      updated: (end) => ({
        allow: [...new Set([...allowed, ...found(end).map(({ kind }) => kind)])].sort(),
        ...(longPollNs === undefined ? {} : { long_poll: timeJson(longPollNs) }),
      }),
    };
  },
};

function kindAt(value: Json, at: string): string {
  const kind = textAt(value, at);
  if (kinds.includes(kind)) return kind;
  const near = nearestWords(kind, kinds);
  throw invalid(
    at,
    `is '${kind}', which no finding is called`,
    `${near.length > 0 ? 'nearest' : 'known'}: ${(near.length > 0 ? near : kinds).join(', ')}`,
  );
}

function verdict(finding: Finding): Verdict {
  const { kind, task, file, line, worst } = finding;
  return {
    ...{ section: 'findings', subject: `${kind} of ${calledOf(finding)}`, state: 'broken', limit: 'none' },
    measured: `task ${task}: ${findingText(finding)}`,
    value: worst ?? undefined,
    place: { file: file ?? undefined, line: line ?? undefined },
  };
}
