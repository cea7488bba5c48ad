import { pino } from 'pino';
import type { Logger } from '../base/logger.js';

/** Logs go to stderr, at once, as JSON lines: stdout is for data. */
export function createLogger(level: string): Logger {
  return pino({ level, base: null }, pino.destination({ dest: 2, sync: true }));
}
