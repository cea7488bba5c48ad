// What is left of a trace whose writer stops in the middle of replacing records by their packed block.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type FileChange, replacement } from '../../../../src/trace/formats/output/packed-block.js';
import { packing } from '../../../../src/trace/formats/perfetto/compressed.js';
import { openTrace, type TraceEvent } from '../../../../src/trace/index.js';
import { packetEnds, uncompressed } from '../../decode-perfetto.js';
import { oneTask } from '../../one-task.js';
import { folder, readBack, write } from '../../written.js';

const schema = ['--proto_path=test/trace', 'test/trace/perfetto-excerpt.proto'];

function changed(file: Buffer, change: FileChange, bytes: number): Buffer {
  if ('cutTo' in change) return file.subarray(0, change.cutTo);
  const written = change.bytes.subarray(0, bytes);
  const after = Buffer.alloc(Math.max(file.length, change.at + written.length));
  after.set(file);
  after.set(written, change.at);
  return after;
}

async function timesIn(file: Buffer): Promise<number[]> {
  writeFileSync(join(folder, 'stopped.pftrace'), file);
  return (await readBack('stopped.pftrace')).map((event) => (event.type === 'gap' ? event.from : event.time));
}

t.test(
  'stopped after any change, and in the middle of a long one, nothing is lost and nothing there twice',
  async (t) => {
    const plain = write('plain.pftrace', [...oneTask, ...oneTask.map(later)]);
    const ends = packetEnds(plain);
    const all = await timesIn(plain);
    t.equal(all.length, 2 * oneTask.length);
    const head = ends[5] ?? 0;
    const packed = packing.pack(plain.subarray(head));
    // Much was flushed, and little: then the packed block is longer than what it replaces.
    for (const flushed of [ends.at(-1) ?? 0, ends.at(-3) ?? 0, ends[6] ?? 0]) {
      let file: Buffer = plain.subarray(0, flushed);
      const before = await timesIn(file);
      let isSwitched = false;
      for (const change of replacement(packing, { start: head, end: flushed }, packed)) {
        const { length } = 'cutTo' in change ? { length: 0 } : change.bytes;
        if (length > packing.skippedHead) {
          for (let part = 0; part < length; part += 1 + Math.floor(length / 23)) {
            const times = await timesIn(changed(file, change, part));
            assert.deepEqual(times, isSwitched ? all : before, `${part} bytes of ${JSON.stringify(change)}`);
          }
        }
        file = changed(file, change, length);
        isSwitched ||= length === packing.skippedHead;
        assert.deepEqual(await timesIn(file), isSwitched ? all : before, JSON.stringify(change));
        // For the schema it is a trace with a field that it does not know.
        execFileSync('protoc', ['--decode=perfetto.protos.Trace', ...schema], { input: uncompressed(file) });
      }
      t.ok(file.equals(Buffer.concat([plain.subarray(0, head), packed])));
    }
  },
);

function later(event: TraceEvent): TraceEvent {
  return { ...event, ...('time' in event ? { time: event.time + 10_000_000 } : {}) } as TraceEvent;
}

t.test('flushed at any time, a long trace has the same bytes', async (t) => {
  const files = [0, 1, 300, 4001].map((every) => {
    const path = join(folder, `flushed-${every}.pftrace`);
    const trace = openTrace(path);
    trace.begin({
      program: 'k',
      buildId: undefined,
      arch: 'riscv64',
      clock: { name: 'c', resolutionNs: 1, guest: true },
      harts: [{ number: 0, name: 'hart 0' }],
    });
    for (let n = 0; n < 30_000; n++) {
      trace.event({
        type: 'console',
        time: n as never,
        text: `line ${n} ${'x'.repeat(n % 97)} ${Math.imul(n, 40503) >>> 0}`,
      });
      if (every > 0 && n % every === 0) trace.flush();
    }
    trace.end();
    return readFileSync(path);
  });
  for (const file of files) t.ok(file.equals(files[0] as Buffer));
  t.ok(packetEnds(files[0] as Buffer).length < 10_000, 'there are packed blocks');
});
