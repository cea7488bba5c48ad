import { createRequire } from 'node:module';
import type { Logger } from '../base/logger.js';
import { visibleJson } from '../text/index.js';
import { note } from './standard-error.js';

const levels: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];

/**
 * Logs go to stderr, at once: stdout is for data. With a level they are JSON lines. Without, warnings alone are there,
 * as sentences. pino is loaded with the first line that is written, because most commands write none.
 */
export function createLogger(level: string | undefined): Logger {
  let opened: Pick<Logger, LogLevel> | undefined;
  const lowest = levels.indexOf(level ?? 'warn');
  const isLevelEnabled = (name: string): boolean => levels.indexOf(name) >= lowest;
  const writes = (name: LogLevel) => (fields: object, message: string) => {
    if (!isLevelEnabled(name)) return;
    opened ??= level === undefined ? sentences : openPino(level);
    opened[name](fields, message);
  };
  return { trace: writes('trace'), debug: writes('debug'), info: writes('info'), warn: writes('warn'), isLevelEnabled };
}

type LogLevel = 'trace' | 'debug' | 'info' | 'warn';

/** `rsptrace: records wait in memory now (path: /tmp/x)`. */
function tell(fields: object, message: string): void {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  const told = known.map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(', ') : String(value)}`);
  note(`${message}${told.length > 0 ? ` (${told.join('; ')})` : ''}`);
}

const sentences: Pick<Logger, LogLevel> = { trace: tell, debug: tell, info: tell, warn: tell };

function openPino(level: string): Logger {
  const { pino } = createRequire(import.meta.url)('pino') as typeof import('pino');
  return pino({ level, base: null }, { write: (line) => void process.stderr.write(visibleJson(line)) });
}
