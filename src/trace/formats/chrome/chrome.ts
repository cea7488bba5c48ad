import { type FileHead, startOf } from '../../../base/file-head.js';
import type { Format } from '../format.js';
import { Lanes } from '../lanes.js';
import { ChromeWriter } from './write.js';

/** Chrome's Trace Event Format: ./writer.ts. */
export const chrome: Format = {
  name: 'Chrome Trace Events',
  extensions: ['.json'],
  about: 'timelines as JSON, for ui.perfetto.dev, chrome://tracing and speedscope',
  use: 'open it in ui.perfetto.dev or chrome://tracing',
  isAppended: true,
  recognizes: isChrome,
  open: (file) => new Lanes(new ChromeWriter(file)),
};

/** Both forms: an array of events with `ph`, and an object with `traceEvents`. */
function isChrome(head: FileHead): boolean {
  const text = startOf(head);
  return (/^\s*\[\s*\{/.test(text) || /^\s*\{.*"traceEvents"\s*:\s*\[/s.test(text)) && /"ph"\s*:\s*"/.test(text);
}
