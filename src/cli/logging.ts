import { pino } from 'pino';
import type { Logger } from '../base/logger.js';
import { visibleJson } from '../base/visible.js';

/** Logs go to stderr, at once, as JSON lines: stdout is for data. */
export function createLogger(level: string): Logger {
  return pino({ level, base: null }, { write: (line) => void process.stderr.write(visibleJson(line)) });
}
