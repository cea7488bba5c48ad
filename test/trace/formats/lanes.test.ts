// What both formats with timelines show of random stories.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import type { RootRef } from '../../../src/trace/index.js';
import { readChrome } from '../decode-chrome.js';
import { readPerfetto, type Slice } from '../decode-perfetto.js';
import { oneTask } from '../one-task.js';
import { type Story, stories, type TruePoll, trueWaits } from '../stories.js';
import { decode, parse, write } from '../written.js';

const fixed = { seed: 20_26, numRuns: 80 };

/** What timelines of a story must show, worked out from the story and not from its events. */
function expected(told: Story): Record<'harts' | 'tasks' | 'waits', string[]> {
  const row = (...cells: unknown[]) => cells.join(' ');
  const over = told.polls.map((poll) => row(poll.future.future, poll.begin, poll.end, poll.result));
  return {
    harts: told.polls.map((poll, i) => row('hart', poll.hart, poll.around.length, over[i])).sort(),
    tasks: told.polls
      .map((poll, i) =>
        row('task', poll.root.key, poll.around.filter((outer) => outer.root === poll.root).length, over[i]),
      )
      .sort(),
    waits: trueWaits(told)
      .map(({ root, begin, end }) => row('wait', root.key, begin, end))
      .sort(),
  };
}

function shown(
  slices: readonly Slice[],
  harts: Map<string, number>,
  tasks: Map<string, number>,
  depthOfTask: number,
): ReturnType<typeof expected> {
  const row = (...cells: unknown[]) => cells.join(' ');
  const rows = { harts: [] as string[], tasks: [] as string[], waits: [] as string[] };
  for (const { kind, track, name, begin, end, depth, args } of slices) {
    const hart = harts.get(track);
    const task = tasks.get(track);
    if (kind !== 'slice') continue;
    if (hart !== undefined) rows.harts.push(row('hart', hart, depth, name, begin, end, args.result));
    else if (name.startsWith('waiting')) rows.waits.push(row('wait', task, begin, end));
    else if (depth >= depthOfTask)
      rows.tasks.push(row('task', task, depth - depthOfTask, name, begin, end, args.result));
  }
  for (const list of Object.values(rows)) list.sort();
  return rows;
}

/** When a task's own Future was ready. */
function completed({ polls }: Story): string[] {
  const own = polls.filter(({ root, future, around }) => future === root.future && isOutermost(root, around));
  return own
    .filter(({ result }) => result === 'ready')
    .map(({ end }) => `completed ${end}`)
    .sort();
}

function isOutermost(root: RootRef, around: readonly TruePoll[]): boolean {
  return around.every((outer) => outer.root !== root);
}

t.test('whatever happens in the guest, both formats show each poll and each wait as it was', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, (told) => {
        const { slices, tracks } = readPerfetto(decode(write('p.pftrace', told.events)));
        const harts = new Map([
          ['4', 0],
          ['6', 1],
        ]);
        const tasks = new Map(
          [...tracks.keys()].filter((uuid) => Number(uuid) % 2 === 1).map((uuid) => [uuid, (Number(uuid) - 3) / 2]),
        );
        // One slice a poll, on its hart; what joins a task's polls are flows.
        assert.deepEqual(shown(slices, harts, tasks, 0), { ...expected(told), tasks: [] });
        const outermost = told.polls.filter(({ root, around }) => isOutermost(root, around));
        const flowing = slices.filter(({ category, flows = [] }) => category === 'poll' && flows.length > 0);
        assert.deepEqual(
          flowing.map(({ name, begin, flows }) => [name, begin, ...(flows ?? [])].join(' ')).sort(),
          outermost.map(({ future, begin, root }) => [future.future, begin, root.key].join(' ')).sort(),
        );
        const instants = slices.filter(({ kind, category }) => kind === 'instant' && category !== 'task');
        // What recorded it, and that it ended.
        assert.equal(instants.length, told.instants.length + 2);
        const ends = slices.filter(({ category }) => category === 'task').map(({ name, begin }) => `${name} ${begin}`);
        assert.deepEqual(ends.filter((end) => end.startsWith('completed')).sort(), completed(told));

        const chrome = readChrome(parse(write('p.json', told.events)));
        const chromeHarts = new Map([
          ['tid 1', 0],
          ['tid 2', 1],
        ]);
        const chromeTasks = new Map(chrome.map(({ track }) => [track, Number(track.split(' ')[1])]));
        assert.deepEqual(shown(chrome, chromeHarts, chromeTasks, 1), expected(told));
        assert.equal(chrome.filter(({ kind }) => kind === 'instant').length, told.instants.length + 1);
      }),
      fixed,
    ),
  );
});

t.test('events that are missing cost the slices they are about, and nothing else', async (t) => {
  const holes = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 130, maxLength: 130 });
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, holes, (told, kept) => {
        const events = told.events.filter((_, i) => kept[i] !== 0);
        // Both readers throw where an end has no begin, or ends another slice than its own.
        const { slices } = readPerfetto(decode(write('h.pftrace', events)));
        const chrome = readChrome(parse(write('h.json', events)));
        const polls = (list: readonly Slice[]) =>
          list.filter(({ category, kind }) => category === 'poll' && kind === 'slice');
        const begins = events.filter(({ type }) => type === 'poll-begin').length;
        assert.equal(polls(slices).length, begins);
        assert.equal(polls(chrome).length, begins);
      }),
      fixed,
    ),
  );
});

t.test('a poll that the trace begins in the middle of leaves an instant, and its wait', async (t) => {
  const tail = oneTask.slice(5, 7);
  const { slices } = readPerfetto(decode(write('tail.pftrace', tail)));
  t.same(
    slices.map(({ kind, name, begin, end }) => [kind, name, begin, end]),
    [
      ['instant', 'rsptrace', 500, 500],
      ['instant', 'a', 500, 500],
      ['slice', 'waiting at src/c.rs:31, in timer Sleep', 500, 5_000_000_123],
      ['slice', 'a', 5_000_000_123, undefined],
      ['instant', 'end', 5_000_000_123, 5_000_000_123],
    ],
    'all begins with the first event',
  );
  t.same(
    readChrome(parse(write('tail.json', tail))).map(({ kind, name, begin, end }) => [kind, name, begin, end]),
    [
      ['instant', 'rsptrace', 500, 500],
      ['slice', 'a @0xffffffff80412340', 500, undefined],
      ['instant', 'a', 500, 500],
      ['instant', 'a', 500, 500],
      ['slice', 'waiting at src/c.rs:31, in timer Sleep', 500, 5_000_000_123],
      ['slice', 'a', 5_000_000_123, undefined],
      ['slice', 'a', 5_000_000_123, undefined],
    ],
  );
});
