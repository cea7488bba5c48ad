// What is appended to a log comes out again in its order, whatever is read when, and however its end is torn.
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { LogReader, RawLog, rawLogMagic } from '../../src/inject/raw-log.js';
import { scratchFolder } from '../support/command.js';

const slot = 64;

/** Each slot holds its number. */
function slots(first: number, count: number): Uint8Array {
  const bytes = new Uint8Array(count * slot);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < count; i++) view.setUint32(i * slot, first + i, true);
  return bytes;
}

/** What is to be read: numbers of slots, and texts. */
function readAll(reader: LogReader, end: number): (number | string)[] {
  const read: (number | string)[] = [];
  for (;;) {
    const part = reader.next(end);
    if (part === undefined) return read;
    if (part.kind === 'damaged') throw new Error(part.why);
    if (part.kind === 'entry') read.push(part.text);
    else for (let at = part.start; at < part.end; at += slot) read.push(part.view.getUint32(at, true));
  }
}

t.test('what is appended is read, while it is appended and afterwards', async (t) => {
  const path = join(scratchFolder(t), 'log');
  const step = fc.oneof(
    fc.record({ slots: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 3000, max: 40_000 })) }),
    fc.record({ text: fc.string({ maxLength: 3000 }) }),
    fc.constant({ read: true as const }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const log = new RawLog(path);
      const [behind, later] = [new LogReader(log.read), new LogReader(log.read)];
      behind.slot = slot;
      later.slot = slot;
      const wanted: (number | string)[] = [];
      const read: (number | string)[] = [];
      let next = 1;
      for (const each of [...steps, { read: true as const }]) {
        if ('slots' in each) {
          log.records(slots(next, each.slots));
          for (let i = 0; i < each.slots; i++) wanted.push(next++);
        } else if ('text' in each) {
          log.append({ text: each.text });
          wanted.push(JSON.stringify({ text: each.text }));
        } else {
          log.flush();
          // One by one: more than 100,000 arguments would not fit on the stack.
          for (const one of readAll(behind, log.length)) read.push(one);
        }
      }
      const all = readAll(later, log.length);
      log.remove();
      return JSON.stringify(read) === JSON.stringify(wanted) && JSON.stringify(all) === JSON.stringify(wanted);
    }),
    { numRuns: 40 },
  );
});

t.test('of a torn file every whole record is read, and nothing else', async (t) => {
  const path = join(scratchFolder(t), 'log');
  const log = new RawLog(path);
  log.append({ begin: 1 });
  const first = log.length;
  log.records(slots(1, 5));
  log.flush();
  const whole = log.length;
  t.equal(readFileSync(path).length, whole);
  for (let size = whole; size >= rawLogMagic.length; size--) {
    truncateSync(path, size);
    const reader = new LogReader(log.read);
    reader.slot = slot;
    const records = Math.max(0, Math.floor((size - first - 8) / slot));
    const wanted = [...(size >= first ? ['{"begin":1}'] : []), ...Array.from({ length: records }, (_, i) => i + 1)];
    t.same(readAll(reader, size), wanted, `${size} bytes`);
  }
});

t.test('nothing comes behind what could not be written', async (t) => {
  const path = join(scratchFolder(t), 'log');
  const log = new RawLog(path);
  log.append({ first: 1 });
  const isIt = (fd: string): boolean => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      return false;
    }
  };
  const fd = Number(readdirSync('/proc/self/fd').find(isIt));
  closeSync(fd);
  t.throws(() => log.append({ second: 2 }), { code: 'EBADF' });
  t.equal(openSync(path, 'r+'), fd, 'the file can be written again');
  t.throws(() => log.append({ third: 3 }), { code: 'EBADF' });
  log.close();
  t.notMatch(readFileSync(path, 'latin1'), /third/);
});
