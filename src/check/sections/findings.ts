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
  proposed: () => ({ allow: [] }),
  parse(value, at) {
    const { allow = [], long_poll: longPoll } = objectAt(value, at, ['allow', 'long_poll']);
    const allowed = new Set(
      listAt(allow, below(at, 'allow')).map((kind, i) => kindAt(kind, below(below(at, 'allow'), i))),
    );
    const longPollNs = longPoll === undefined ? undefined : timeAt(longPoll, below(at, 'long_poll'));
    const tasks = new TaskSummary();
    const search = new Findings({ longPollNs });
    const found = ({ facts }: Ending): readonly Finding[] => {
      // Where stops took time, findings about time are made of it; as at the end of a recording.
      const disturbance = disturbanceOf(facts);
      const times = { ...disturbance, isTimed: disturbance !== undefined || longPollNs !== undefined };
      // A trace does not say whether every wake was seen, so idle polls are not among these.
      return search.all(tasks.rows(), { ...times, seesWakes: false }, (root) => tasks.numberOf(root));
    };
    return {
      event: (event) => {
        tasks.event(event);
        search.event(event);
      },
      verdicts: (end) => {
        const bad = found(end).filter(({ kind }) => !allowed.has(kind));
        if (bad.length > 0) return bad.map(verdict);
        const limit = allowed.size === 0 ? 'none' : `none but ${[...allowed].join(', ')}`;
        return [{ section: 'findings', subject: 'findings', state: 'kept', limit, measured: 'none' }];
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
