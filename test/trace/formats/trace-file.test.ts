import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { RsptraceError } from '../../../src/base/errors.js';
import { formats, OutputFile, openTrace } from '../../../src/trace/index.js';
import { heapBytes, withFilesUpTo } from '../../support/limits.js';
import { long } from '../../support/long.js';
import { functions } from '../call-stories.js';
import { readChrome } from '../decode-chrome.js';
import { packetEnds, readPerfetto, uncompressed } from '../decode-perfetto.js';
import { oneTask } from '../one-task.js';
import { futures, info, link, nanos, stories, suspend0, suspend1, tell, unresumed } from '../stories.js';
import { decode, folder, parse, write } from '../written.js';

t.test('cut off at any byte, a Chrome trace holds the records whole before the cut', async (t) => {
  const text = write('cut.json', oneTask).toString();
  const records = JSON.parse(text) as unknown[];
  t.equal(text.slice(-3), '\n]\n');
  // Every line but the first and the last is a record; it is whole from its last brace on.
  const ends: number[] = [];
  for (let at = text.indexOf('\n') + 1; at < text.length - 2; at = text.indexOf('\n', at) + 1) {
    ends.push(text.slice(0, text.indexOf('\n', at)).replace(/,$/, '').length);
  }
  t.equal(ends.length, records.length);
  for (let cut = 2; cut <= text.length; cut += long ? 1 : 3) {
    // What viewers do: drop a torn record and a trailing comma, add the missing bracket.
    const lines = text.slice(2, cut).split('\n');
    if (!parses(lines.at(-1) ?? '')) lines.pop();
    const repaired = JSON.parse(`[${lines.join('').replace(/[,\]]$/, '')}]`) as unknown[];
    assert.deepEqual(repaired, records.slice(0, ends.filter((end) => end <= cut).length), `cut at ${cut}`);
  }
});

function parses(record: string): boolean {
  try {
    JSON.parse(record.replace(/[,\]]$/, '') || 'null');
    return true;
  } catch {
    return false;
  }
}

t.test('the same events make the same bytes', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, (told) => {
        for (const name of ['same.pftrace', 'same.json', 'same.speedscope.json']) {
          const first = write(name, told.events);
          const again = write(name, structuredClone(told.events));
          assert.ok(first.equals(again));
        }
      }),
      { seed: 20_26, numRuns: 8 },
    ),
  );
});

/** A million under `--long`, where less that is kept of each would be seen. */
const many = long ? 1_000_000 : 60_000;
const warmUp = long ? 100_000 : 30_000;

t.test(`${many} events: memory stays, and at every moment the file ends where a packet ends`, async (t) => {
  const path = join(folder, 'million.pftrace');
  const sink = openTrace(path);
  sink.begin(info);
  const sizes: number[] = [];
  const run = (events: number, from: number) => {
    for (let i = from; i < from + events; i += 2) {
      // A new task at each poll, in one of 64 places, and a chain and states that are new objects each time.
      const task = { key: i, future: futures[0], address: addr(0x8000_0000 + (i % 128) * 0x100) };
      const at = { hart: 0, root: task, future: futures[0], address: task.address, depth: 0 };
      const began = nanos(i * 100);
      const begin = { type: 'poll-begin', time: began, ...at, state: { ...unresumed } } as const;
      sink.event(begin);
      const end = { time: nanos(i * 100 + 50), begin, began, result: 'pending', state: { ...suspend0 } } as const;
      sink.event({ type: 'poll-end', ...end, ...at, chain: [link(futures[1], 'b', { ...suspend1 })] });
      if (i % 10_000 === 0) sizes.push(statSync(path).size);
    }
  };
  run(warmUp, 0);
  const before = heapBytes();
  run(many - warmUp, warmUp);
  const grown = heapBytes() - before;
  // Tables of fixed size fill and empty again; 450,000 tasks would be 16 MB at 36 bytes each, 200,000 at 80 bytes.
  t.ok(grown < 16_000_000, `grew by ${grown} bytes`);
  sink.end();
  const bytes = readFileSync(path);
  const blocks = packetEnds(bytes);
  const ends = packetEnds(uncompressed(bytes));
  // Each poll: a track, a begin, an end, a wait's begin; and that wait's end and the task's, for all but the last task
  // of each of 64 places.
  // The counter of tasks that wait: a track, up at each wait's begin, down at its end.
  const counters = 1 + many - 64;
  t.equal(ends.length, 7 + (many / 2) * 6 - 2 * 64 + counters);
  t.ok(sizes.length === many / 10_000 && sizes.every((size) => size === 0 || blocks.includes(size)));
});

t.test('a long trace is compressed, has the same bytes however often it was flushed, and can be cut anywhere', (t) => {
  const [fn] = functions;
  assert.ok(fn);
  const call = { hart: 0, depth: 0, function: fn, arguments: [] };
  /** `flushEvery`: so many events. */
  const written = (name: string, flushEvery: number, seen?: (file: Buffer, calls: number) => void) => {
    const path = join(folder, name);
    const sink = openTrace(path);
    sink.begin(info);
    for (let i = 1; i <= 60_000; i++) {
      const began = nanos(i * 1000);
      const begin = { type: 'call-begin', time: began, ...call } as const;
      sink.event(begin);
      sink.event({ type: 'call-end', time: nanos(i * 1000 + (i % 777)), ...call, began, begin });
      if (i % flushEvery !== 0) continue;
      sink.flush();
      seen?.(readFileSync(path), i);
    }
    sink.end();
    return readFileSync(path);
  };
  const once = written('once.pftrace', 1e9);
  let before = 0;
  const often = written('often.pftrace', 7000, (file, calls) => {
    const plain = uncompressed(file);
    const count = packetEnds(plain).length;
    t.equal(packetEnds(file).at(-1), file.length, 'it ends where a packet ends');
    t.equal(count - before, calls === 7000 ? count : 14_000, 'two packets a call');
    before = count;
  });
  t.ok(often.equals(once));
  const plain = uncompressed(once);
  const options = { input: written('once.pftrace.gz', 1e9), maxBuffer: 1 << 28 };
  t.ok(execFileSync('gunzip', ['-c'], options).equals(plain));
  t.ok(plain.length > 1.5e6 && once.length < plain.length / 2, `${plain.length} bytes, ${once.length} in the file`);
  const ends = packetEnds(once);
  // What the file is, and of which version, can be read without unpacking anything.
  t.ok(once.subarray(0, ends[6]).includes('rsptrace'));
  for (const cut of [10, 5000, 20_000, once.length - 100, once.length]) {
    const end = ends.findLast((each) => each <= cut) ?? 0;
    const kept = uncompressed(once.subarray(0, end));
    t.ok(kept.equals(plain.subarray(0, kept.length)), `cut at ${cut}`);
  }
  t.end();
});

t.test('after a flush the file holds all events so far, however long one is', async (t) => {
  const long = { ...suspend0, name: `Suspend0${'€'.repeat(60_000)}` };
  const events = oneTask.map((event) => (event.type === 'state' ? { ...event, to: long } : event));
  for (const [name, read] of [
    ['flush.pftrace', () => readPerfetto(decode(readFileSync(join(folder, 'flush.pftrace')))).slices],
    ['flush.json', () => readChrome(parse(Buffer.from(`${readFileSync(join(folder, 'flush.json'))}]`)))],
  ] as const) {
    const sink = openTrace(join(folder, name));
    sink.begin(info);
    const seen: number[] = [];
    for (const event of events) {
      sink.event(event);
      sink.flush();
      seen.push(read().filter(({ category }) => !['trace', 'wait', 'task'].includes(category)).length);
    }
    t.same(seen, name === 'flush.json' ? [3, 4, 6, 7, 7, 8, 10, 10] : [1, 2, 3, 4, 4, 4, 5, 5]);
    t.ok(read().some((slice) => slice.name === `a: ${long.name}`));
    sink.end();
  }
});

t.test('a trace that has begun is in its file before its first event, and the end writes the same bytes', (t) => {
  for (const { name, extensions, isAppended, open } of formats) {
    const bytes = (flushes: boolean): Buffer => {
      const path = join(folder, `begun-${flushes}${extensions[0]}`);
      const sink = openTrace(path);
      sink.begin(info);
      if (flushes) sink.flush();
      if (flushes && open) t.equal(readFileSync(path).length > 0, isAppended, name);
      for (const event of oneTask) sink.event(event);
      sink.end();
      return open ? readFileSync(path) : Buffer.of();
    };
    t.ok(bytes(true).equals(bytes(false)), name);
  }
  t.end();
});

t.test('files: opened before anything is written, left alone when nothing is', async (t) => {
  const code = (make: () => unknown): string => {
    try {
      make();
      return 'no error';
    } catch (error) {
      if (!(error instanceof RsptraceError)) throw error;
      t.equal(error.message.split('\n').length, 1);
      t.type(error.hint, 'string');
      return `${error.code}: ${error.message} ${error.hint}`;
    }
  };
  t.match(
    code(() => openTrace(join(folder, 'missing/x.pftrace'))),
    /^OUTPUT_CANNOT_WRITE: .*missing\/x\.pftrace.*ENOENT/,
  );
  writeFileSync(join(folder, 'file'), '');
  t.match(
    code(() => openTrace(join(folder, 'file/x.json'))),
    /^OUTPUT_CANNOT_WRITE: .*ENOTDIR/,
  );
  mkdirSync(join(folder, 'dir.json'));
  t.match(
    code(() => openTrace(join(folder, 'dir.json'))),
    /^OUTPUT_CANNOT_WRITE: .*EISDIR/,
  );
  t.match(
    code(() => openTrace(join(folder, 'x.json.bz2'))),
    /^TRACE_UNKNOWN_FORMAT: .*\.pftrace, \.perfetto-trace, .*\.json/,
  );
  t.match(
    code(() => openTrace(join(folder, 'x'))),
    /^TRACE_UNKNOWN_FORMAT/,
  );
  t.notOk(existsSync(join(folder, 'x.json.bz2')));

  const unused = join(folder, 'unused.json');
  const never = openTrace(unused);
  t.ok(existsSync(unused));
  never.end();
  never.end();
  t.notOk(existsSync(unused));

  const older = join(folder, 'older.perfetto-trace');
  writeFileSync(older, 'x'.repeat(100_000));
  openTrace(older, { force: true }).end();
  t.equal(readFileSync(older).length, 100_000);
  const newer = openTrace(older, { force: true });
  tell(newer, oneTask);
  newer.end();
  t.ok(readFileSync(older).equals(write('one.pftrace', oneTask)));
});

t.test('a full disk: one error, whole records kept', async (t) => {
  const out = new OutputFile('/dev/full');
  out.textRecord('x');
  t.throws(() => out.flush(), { code: 'TRACE_WRITE_FAILED', message: /\/dev\/full.*ENOSPC/ });
  out.textRecord('y');
  out.record(new Uint8Array(1_000_000), 1_000_000);
  out.flush();
  out.close();
  out.close();

  // The write that passes the limit is done in part.
  const path = join(folder, 'limited');
  const limited = new OutputFile(path);
  withFilesUpTo(1000 * 1024, () => {
    const write = (): void => {
      for (let i = 0; ; i++) limited.textRecord(`${String(i).padStart(998, '0')}\n`);
    };
    t.throws(write, { code: 'TRACE_WRITE_FAILED', message: /limited.*EFBIG/ });
  });
  limited.textRecord('after the error');
  limited.close();
  t.equal(statSync(path).size, Math.floor((1000 * 1024) / 999) * 999);
  const kept = readFileSync(path, 'utf8').trimEnd().split('\n');
  t.same(kept.map(Number), [...kept.keys()]);
});
