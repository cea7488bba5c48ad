import { createRequire } from 'node:module';
import type { Logger } from '../base/logger.js';
import { visibleJson } from '../base/visible.js';

const levels: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];

/**
 * Logs go to stderr, at once, as JSON lines: stdout is for data.
 * pino is loaded with the first line that is written,
 * because most commands write none.
 */
export function createLogger(level: string): Logger {
  let opened: Logger | undefined;
  const lowest = levels.indexOf(level);
  const isLevelEnabled = (name: string): boolean => levels.indexOf(name) >= lowest;
  const writes = (name: 'trace' | 'debug' | 'info' | 'warn') => (fields: object, message: string) => {
    if (!isLevelEnabled(name)) return;
    opened ??= openPino(level);
    opened[name](fields, message);
  };
  return { trace: writes('trace'), debug: writes('debug'), info: writes('info'), warn: writes('warn'), isLevelEnabled };
}

function openPino(level: string): Logger {
  const { pino } = createRequire(import.meta.url)('pino') as typeof import('pino');
  return pino({ level, base: null }, { write: (line) => void process.stderr.write(visibleJson(line)) });
}
