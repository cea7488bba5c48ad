// HTML reports: their data against JSON lines of the same events, and what a browser makes of them.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { addr } from '../../../src/base/addr.js';
import { visible } from '../../../src/text/index.js';
import { readBlock } from '../../../src/trace/formats/html/columns.js';
import type { FunctionRef, TraceEvent, TraceFacts } from '../../../src/trace/index.js';
import { longestOf } from '../../../src/trace/viewer/find.js';
import { isSlice, type Trace, traceOf } from '../../../src/trace/viewer/trace.js';
import { openPage, type Page } from '../../support/chromium.js';
import { oneTask } from '../one-task.js';
import { futures, linked, nanos, stories } from '../stories.js';
import { folder, write } from '../written.js';

/** The data of a report, read as the page reads it. */
function reported(name: string, events: readonly TraceEvent[], facts?: TraceFacts): Trace {
  const text = write(name, events, facts).toString();
  const blocks = [...text.matchAll(/<script type="application\/octet-stream">([^<]*)</g)];
  return traceOf(blocks.map(([, packed = '']) => readBlock(inflateRawSync(Buffer.from(packed, 'base64')))));
}

interface Line {
  readonly type: string;
  readonly time_ns: number;
  readonly duration_ns?: number;
  readonly hart?: number;
  readonly depth?: number;
  readonly name: string;
  readonly instance?: string;
  readonly file?: string;
  readonly line?: number;
  readonly task?: string;
  readonly result?: string;
}

function linesOf(name: string, events: readonly TraceEvent[]): Line[] {
  const [, ...lines] = write(name, events).toString().trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Line);
}

/** Calls and polls whose end was seen, as texts: what JSON lines say of each. */
function slicesOf(trace: Trace): string[] {
  const found: string[] = [];
  for (const [i, number] of trace.what.entries()) {
    const what = trace.whats[number];
    if (what === undefined || (what.kind !== 'call' && what.kind !== 'poll') || trace.isOpen[i] === 1) continue;
    const hart = trace.lanes[(trace.lane[i] as number) - 1]?.name;
    const task = trace.lanes[(trace.task[i] as number) - 1]?.name.replace(/^\d+: /, '');
    const result = /^result\t(.*)$/m.exec(trace.details[trace.detail[i] as number] ?? '')?.[1];
    const [start, end] = [trace.start[i] as number, trace.end[i] as number];
    const { kind, name, instance, file, line } = what;
    found.push(
      JSON.stringify([kind, start, end - start, hart, trace.depth[i], name, instance, file, line, task, result]),
    );
  }
  return found.sort();
}

const shown = (text: string | undefined): string | undefined => text && visible(text);

t.test('slices have the times, lanes, names and results that JSON lines of the same events have', (t) => {
  const check = (events: readonly TraceEvent[]): void => {
    const wanted = linesOf('same.jsonl', events)
      .filter(({ type, duration_ns }) => (type === 'call' || type === 'poll') && duration_ns !== undefined)
      .map(({ type, time_ns, duration_ns, hart, depth, name, instance, file, line, task, result }) =>
        JSON.stringify([
          ...[type, time_ns, duration_ns, `hart ${hart}`, depth, shown(name), shown(instance), shown(file), line],
          ...[shown(task), result],
        ]),
      );
    assert.deepEqual(slicesOf(reported('same.html', events)), wanted.sort());
  };
  t.doesNotThrow(() => check(oneTask));
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, ({ events }) => check(events)),
      { seed: 20_26, numRuns: 50 },
    ),
  );
  t.end();
});

t.test('a wait lies between the polls of a task, named by the place of the await, with its chain', (t) => {
  const { what, whats, start, end, details, detail, task, lanes } = reported('wait.html', oneTask);
  const waits = [...what.keys()].filter((i) => whats[what[i] as number]?.kind === 'wait');
  t.equal(waits.length, 1);
  const [wait = -1] = waits;
  t.match(whats[what[wait] as number], { name: 'src/c.rs:31', file: 'src/c.rs', line: 31 });
  t.same([start[wait], end[wait]], [500, 5_000_000_123]);
  t.match(details[detail[wait] as number], / > b at src\/b.rs:25 > c::d at src\/c.rs:31 > timer::Sleep/);
  t.equal(lanes[(task[wait] as number) - 1]?.name, '1: a @0xffffffff80412340');
  t.end();
});

t.test('a row of a table leads to the longest slice of it', (t) => {
  fc.assert(
    fc.property(stories, ({ events }) => {
      const trace = reported('leads.html', events);
      const { tables, whats, what, start, end, lanes, task } = trace;
      const lengthOf = (slice: number): number => (slice < 0 ? -1 : Number(end[slice]) - Number(start[slice]));
      const longest = (isOf: (slice: number) => boolean): number =>
        [...what.keys()].filter(isOf).reduce((most, slice) => Math.max(most, lengthOf(slice)), -1);
      const kindOf = (slice: number) => whats[Number(what[slice])];
      for (const { instance } of tables?.futures ?? []) {
        const isOf = (slice: number): boolean => kindOf(slice)?.kind === 'poll' && kindOf(slice)?.instance === instance;
        assert.equal(lengthOf(longestOf(trace, { kinds: ['poll'], instance })), longest(isOf));
      }
      for (const { max } of tables?.waits ?? [])
        assert.equal(lengthOf(longestOf(trace, { kinds: ['wait'], length: max })), max);
      for (const { number } of tables?.tasks ?? []) {
        const found = longestOf(trace, { kinds: ['poll', 'wait'], task: number });
        if (found >= 0) assert.ok(lanes[Number(task[found]) - 1]?.name.startsWith(`${number}: `));
      }
    }),
  );
  t.end();
});

t.test('rows of the page are in order and do not overlap, and every slice is in one', (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, ({ events }) => {
        const { rows, start, end, what, whats } = reported('rows.html', events);
        const seen = new Set<number>();
        for (const { ids, depth } of rows)
          for (const [i, id] of ids.entries()) {
            seen.add(id);
            assert.equal(isSlice(whats[what[id] as number]?.kind ?? 'mark'), depth >= 0);
            if (i > 0 && depth >= 0) assert.ok((end[ids[i - 1] as number] as number) <= (start[id] as number));
          }
        assert.equal(seen.size, what.length);
      }),
      { seed: 20_26, numRuns: 50 },
    ),
  );
  t.end();
});

const nasty = [
  '<img src=x onerror="document.title=1">',
  '</script><script>globalThis.bad = 1</script>',
  '<!-- <script> \u202eevil\u2066 \0 \u2028',
  '"\'&amp; <b>bold</b>',
];

function fn(key: number, name: string): FunctionRef {
  return { key, name, instance: `${name}<u8>`, address: addr(0x8000_0000n + BigInt(key)), file: name, line: key };
}

/** A call of each name, a microsecond each; and a line of the console. */
function callsOf(names: readonly string[]): TraceEvent[] {
  const calls = names.flatMap((name, key): TraceEvent[] => {
    const began = nanos(key * 1000);
    const call = { hart: 0, depth: 0, function: fn(key, name) } as const;
    const given = [{ name: 'x', value: name }];
    return [
      { type: 'call-begin', time: began, ...call, arguments: given },
      { type: 'call-end', time: nanos(key * 1000 + 900), ...call, began, result: name },
      { type: 'console', time: nanos(key * 1000 + 950), text: name },
    ];
  });
  return linked(calls);
}

const isShown = "document.documentElement?.dataset.state === 'shown'";

/** The canvas of the timeline, in pixels of the page. */
const canvasOf = (page: Page): Promise<{ left: number; top: number; width: number }> =>
  page.value("document.getElementById('lanes').getBoundingClientRect().toJSON()");

/** With the last slice selected: the left button moves what is shown; another one, and a pointer that was taken away, do not. */
async function onlyDragsMove(
  t: Test,
  page: Page,
  at: { readonly left: number; readonly top: number; readonly width: number },
): Promise<void> {
  const mouse = (type: string, button: string, x: number): Promise<unknown> =>
    page.call('Input.dispatchMouseEvent', { type, button, x: at.left + x, y: at.top, clickCount: 1 });
  await page.call('Input.dispatchKeyEvent', { type: 'keyDown', key: 'f', text: 'f' });
  await page.until("location.hash.startsWith('#t=2910,3990&')");
  const cancel = "document.getElementById('lanes').dispatchEvent(new PointerEvent('pointercancel')) && 0";
  for (const [button, between] of [
    ['right', '0'],
    ['left', cancel],
    ['left', '0'],
  ] as const) {
    await mouse('mousePressed', button, 100);
    await page.value(between);
    await mouse('mouseMoved', button, 200);
    await mouse('mouseReleased', button, 200);
  }
  await page.until("!location.hash.startsWith('#t=2910,')");
  const from = Math.round(2910 - (100 / at.width) * 1080);
  t.equal((await page.value<string>('location.hash')).split('&')[0], `#t=${from},${from + 1080}`);
}

t.test('in a browser: slices are counted, clicks select, drags move, names are no HTML, none is refused', async (t) => {
  write('nasty.html', callsOf(nasty));
  await using page = await openPage(join(folder, 'nasty.html'), { fragment: '#t=0,4000' });
  await page.until(isShown);
  t.equal(await page.value("document.getElementById('count').textContent"), '8 slices and marks');
  const { left, top, width } = await canvasOf(page);
  const perPixel = 4000 / (width - 190);
  for (const [key, name] of nasty.entries()) {
    // Below the times, and the lane with the console's lines.
    await page.click(left + 190 + (key * 1000 + 450) / perPixel, top + 22 + 22 + 8);
    await page.until(`document.querySelector('#details h2')?.textContent.includes(${JSON.stringify(visible(name))})`);
    t.match(await page.value("document.getElementById('details').innerText"), /900 ns/);
  }
  await onlyDragsMove(t, page, { left: left + 190, top: top + 60, width: width - 190 });
  await page.value(
    "[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === 'Functions').click()",
  );
  const cells = await page.value<string[]>(
    "[...document.querySelectorAll('tbody td:first-child')].map((td) => td.textContent)",
  );
  t.same(cells.sort(), nasty.map(visible).sort());
  // A row leads to the longest slice of its function.
  for (const name of nasty) {
    await page.value(
      `[...document.querySelectorAll('tbody tr')].find((row) => row.cells[0].textContent === ${JSON.stringify(visible(name))}).click()`,
    );
    await page.until(`document.querySelector('#details h2')?.textContent.includes(${JSON.stringify(visible(name))})`);
    t.equal(await page.value("document.getElementById('timeline').hidden"), false);
    await page.value(
      "[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === 'Functions').click()",
    );
  }
  t.same(await page.value("[document.images.length, typeof bad, document.querySelectorAll('b').length]"), [
    0,
    'undefined',
    0,
  ]);
  t.same(page.errors, []);
});

t.test('a report that is cut off shows what is whole, and says that its end is missing', async (t) => {
  const names = Array.from({ length: 20_000 }, (_, key) => `f${key % 7}`);
  const whole = write('whole.html', callsOf(names));
  writeFileSync(join(folder, 'cut.html'), whole.subarray(0, whole.length - 1000));
  await using page = await openPage(join(folder, 'cut.html'));
  await page.until(isShown);
  t.equal(await page.value("document.getElementById('count').textContent"), '32 768 slices and marks');
  t.match(await page.value("document.getElementById('about').textContent"), /the end of this file is missing/);
  t.same(page.errors, []);
});

/** The third day: a recursion whose innermost call takes a second, and behind it a call of a nanosecond. */
function recursion(depth: number): TraceEvent[] {
  const [deep, needle] = [fn(1, 'deep'), fn(2, 'needle')];
  const day = 3 * 86_400e9;
  const calls = Array.from({ length: depth }, (_, level) => ({ hart: 0, depth: level, function: deep }));
  const began = (level: number) => nanos(day + 10 * level);
  const last = day + 1e9 + 20 * depth;
  const at = { hart: 0, depth: 0, function: needle } as const;
  return linked([
    ...calls.map((call, level): TraceEvent => ({ type: 'call-begin', time: began(level), ...call, arguments: [] })),
    ...calls.toReversed().map((call, i): TraceEvent => {
      return { type: 'call-end', time: nanos(last - 10 * depth + 10 * i), ...call, began: began(call.depth) };
    }),
    { type: 'call-begin', time: nanos(last + 1e9), ...at, arguments: [] },
    { type: 'call-end', time: nanos(last + 1e9 + 1), ...at, began: nanos(last + 1e9) },
  ]);
}

t.test(
  'a deep recursion is drawn, a search is kept, what is selected is seen however narrow; no other script runs',
  async (t) => {
    const depth = 5000;
    write('deep.html', recursion(depth));
    await using page = await openPage(join(folder, 'deep.html'), { fragment: '#view=Flame%20graph' });
    await page.until(isShown);
    const pixel = async (canvas: string, x: number, y: number): Promise<number[]> => {
      await page.value('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
      const data = `document.querySelector('${canvas}').getContext('2d').getImageData(${x}, ${y}, 1, 1).data`;
      return await page.value(`[...${data}]`);
    };
    const details = "document.getElementById('details').innerText";
    const { top, height } = await page.value<{ top: number; height: number }>(
      "document.getElementById('view').getBoundingClientRect().toJSON()",
    );
    await page.value(`document.getElementById('view').scrollTop = ${18 * depth}`);
    // The last row ends 24 pixels above the end.
    const y = Math.floor(height - 33);
    const [red = 0, , blue = 0] = await pixel('#view canvas', 600, y);
    t.ok(red > 200 && blue < 200, `warm: ${red}, ${blue}`);
    await page.click(600, top + y);
    await page.until(`/^deep\\n/.test(${details})`);
    t.match(await page.value(details), /self\s+1\.0 s\ncalls\s+1\n/);
    const key = (name: string, text?: string) =>
      page.call('Input.dispatchKeyEvent', { type: 'keyDown', key: name, ...(text ? { text } : {}) });
    for (const letter of '/needle') await key(letter, letter);
    await key('Escape');
    await key('1', '1');
    t.equal(await page.value('document.activeElement.id'), 'lanes');
    t.match(await page.value(details), /^Nothing is selected/, 'not the frame');
    const { width } = await canvasOf(page);
    const isMarked = `(() => {
      const { data } = document.getElementById('lanes').getContext('2d').getImageData(190, 32, ${width - 190}, 1);
      for (let i = 0; i < data.length; i += 4) if (data.slice(i, i + 3).join() === '17,24,39') return true;
      return false;
    })()`;
    t.notOk(await page.value(isMarked));
    await key('n', 'n');
    await page.until("location.hash.includes('select=')");
    t.match(await page.value(details), /^call needle\n/);
    // The lanes are drawn at some frame after the key.
    await page.until(isMarked);
    t.same(page.errors, []);
    const added =
      "const s = document.createElement('script'); s.textContent = 'globalThis.bad = 1'; document.body.append(s); typeof bad";
    t.equal(await page.value(added), 'undefined');
    t.match(page.errors.join(), /Content Security Policy/);
  },
);

t.test('the row of a task whose first event is an end leads to its own slices', async (t) => {
  const [first] = futures;
  const [one, other] = [1, 2].map((key) => ({ key, future: first, address: addr(BigInt(0x1000 * key)) }));
  const polled = (root: typeof one, began: number, time: number, isWhole = true) => {
    const at = { hart: 0, depth: 0, root, future: first, address: root?.address };
    const end = { type: 'poll-end', ...at, time: nanos(time), began: nanos(began), result: 'pending', chain: [] };
    return [...(isWhole ? [{ type: 'poll-begin', ...at, time: nanos(began), state: undefined }] : []), end];
  };
  const events = [polled(one, 0, 5, false), polled(one, 10, 12), polled(other, 20, 90)].flat();
  const trace = reported('number.html', linked(events as TraceEvent[]));
  t.same(
    [1, 2].map((task) => trace.start[longestOf(trace, { kinds: ['poll'], task })]),
    [10, 20],
  );
});

t.test('samples are no calls, and a profile does not say that what has no probe is missing', async (t) => {
  const frame = { name: 'spin', instance: 'spin', address: undefined, file: undefined, line: undefined };
  const sample: TraceEvent = { type: 'sample', time: nanos(5), hart: 0, stack: [frame], periodNs: 1000 };
  const profile = reported('profile.html', [sample, sample]).tables;
  t.same(profile?.notes, []);
  t.match(profile?.calls, { calls: [0], samples: [2], self: [2000] });
  const mixed = reported('mixed.html', [...callsOf(['f']), sample]).tables;
  const numbers = Object.fromEntries(
    mixed?.calls.frame.map((number, i) => [
      mixed.calls.frames[number]?.name,
      [mixed.calls.calls[i], mixed.calls.samples[i]],
    ]) ?? [],
  );
  t.same(numbers, { f: [1, 0], '[samples]': [0, 0], spin: [0, 1] });
  t.match(mixed?.notes, [/^functions and Futures without a probe are not in the trace/]);
});

t.test('an end on the stack of a thread on which nothing was seen to begin is a mark there', async (t) => {
  const [fn] = callsOf(['late']).flatMap((event) => ('function' in event ? event.function : []));
  const thread = { key: 3, stack: addr(0x4000n) };
  const at = { type: 'call-end', hart: 0, depth: 0, time: nanos(9), began: nanos(2), thread, function: fn };
  const trace = reported('late.html', [at as TraceEvent]);
  t.same(
    [...trace.lane].map((lane) => trace.lanes[lane - 1]?.name),
    ['stack 0x4000'],
  );
});

t.test('times that go back, as those of a damaged trace, cost no other record', async (t) => {
  const [first] = futures;
  const root = { key: 1, future: first, address: addr(0x1000n) };
  const polled = (hart: number, began: number, time: number) => {
    const at = { hart, depth: 0, root, future: first, address: root.address };
    const begin = { type: 'poll-begin', ...at, time: nanos(began), state: undefined };
    return [begin, { type: 'poll-end', ...at, time: nanos(time), began: nanos(began), result: 'pending', chain: [] }];
  };
  const trace = reported('back.html', linked([...polled(0, 10, 100), ...polled(1, 40, 60)] as TraceEvent[]));
  const spans = [...trace.what.keys()].map((i) => [trace.start[i], trace.end[i]]);
  t.same(spans, [
    [10, 100],
    [100, 100],
    [40, 60],
    [60, 100],
  ]);
});

t.test('times that a stop is in are upper bounds in the tables, where other probes need none', async (t) => {
  const counts = { events: 2, stops: 1, records: 1, missing: 0, foreignHits: 0, neverLoaded: [], tailLost: false };
  const recording = { end: 'until', stub: undefined, ...counts, stopsBeside: 1 };
  const stopped = callsOf(['f']).map((event) => (event.type === 'call-end' ? { ...event, stopped: true } : event));
  const trace = reported('stopped.html', stopped as TraceEvent[], { probes: [], recording });
  t.match(trace.tables?.functions, [{ function: 'f', times_at_most: true }]);
});
