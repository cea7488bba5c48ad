import { pino } from 'pino';
import type { Logger } from '../base/logger.js';
import { visibleJson } from '../base/visible.js';

/** Logs go to stderr, at once, as JSON lines: stdout is for data. */
export function createLogger(level: string): Logger {
  const out = pino.destination({ dest: 2, sync: true });
  return pino({ level, base: null }, { write: (line) => void out.write(visibleJson(line)) });
}
