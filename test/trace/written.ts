import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onEvents, openTrace, readTrace, type TraceEvent, type TraceFacts } from '../../src/trace/index.js';
import type { ChromeRecord } from './decode-chrome.js';
import { children, type Message, protoc } from './decode-perfetto.js';
import { tell } from './stories.js';

/** Of all test files that a process runs; removed when it ends. */
export const folder = mkdtempSync(join(tmpdir(), 'rsptrace-trace-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

/** The bytes of a trace of these events, in the format that the file's name asks for. */
export function write(name: string, events: readonly TraceEvent[], facts?: TraceFacts): Buffer {
  const path = join(folder, name);
  tell(openTrace(path, { force: true }), events, facts);
  return readFileSync(path);
}

export const decode = (bytes: Uint8Array): Message[] => children(protoc(bytes), 'packet');
export const parse = (bytes: Buffer): ChromeRecord[] => JSON.parse(bytes.toString()) as ChromeRecord[];

/** The events of a trace in the folder. */
export async function readBack(name: string): Promise<TraceEvent[]> {
  const events: TraceEvent[] = [];
  await readTrace(
    join(folder, name),
    onEvents((event) => void events.push(event)),
  );
  return events;
}
