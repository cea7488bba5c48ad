import { createRequire } from 'node:module';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { visible, visibleJson } from '../text/index.js';
import { note, writeMessage } from './failure.js';

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
type Level = (typeof levels)[number];
type Written = 'trace' | 'debug' | 'info' | 'warn';

/** `debug:inject,clock`: a level, and the parts of rsptrace that it is for; of the others there are warnings. */
interface LogWish {
  readonly level: Level;
  /** Undefined for all. */
  readonly parts: readonly string[] | undefined;
}

/** The parts that log: rooms of the program. */
const parts = [
  ...['rsp', 'dwarf', 'probes', 'scratch', 'stop', 'inject', 'engines', 'clock', 'record', 'trace', 'tasks', 'unwind'],
];

/** Reads a `--log` or RSPTRACE_LOG. Throws an error with what it may be. */
export function wishOf(words: string, option = '--log'): LogWish {
  const [name, list] = words.split(':', 2);
  const level = levels.find((one) => one === name);
  const wanted = list?.split(',');
  const unknown = wanted?.find((one) => !parts.includes(one));
  if (level !== undefined && unknown === undefined) return { level, parts: wanted };
  const is = level === undefined ? levels.toReversed().join(', ') : `${name}:PART, with parts of ${parts.join(', ')}`;
  throw new RsptraceError('USAGE', `${option} is one of ${is}, not '${unknown ?? words}'`, {
    hint: 'debug:inject,clock is debug of these two parts, and warnings of the others',
  });
}

/**
 * Logs go to stderr, at once: stdout is for data. With a level they are lines for people on a terminal, JSON lines
 * elsewhere. Without, warnings alone are there, as sentences.
 */
export function createLogger(words: string | undefined): Logger {
  const env = process.env.RSPTRACE_LOG;
  if (words !== undefined) return loggerOf(wishOf(words));
  if (env) return loggerOf(wishOf(env, 'RSPTRACE_LOG'));
  return partLogger(undefined, { level: 'warn', parts: undefined }, (_level, _part, fields, message) =>
    note(`${message}${fieldsText(fields, ' (', '; ', ')')}`),
  );
}

function loggerOf(wish: LogWish): Logger {
  return partLogger(undefined, wish, process.stderr.isTTY ? lineForPeople : jsonLine);
}

type Write = (level: Written, part: string | undefined, fields: object, message: string) => void;

function partLogger(part: string | undefined, wish: LogWish, write: Write): Logger {
  const isWanted = part === undefined || wish.parts === undefined || wish.parts.includes(part);
  // What stands in no part is not what a list of parts asks for.
  const hasLevel = isWanted && !(part === undefined && wish.parts !== undefined);
  const lowest = levels.indexOf(hasLevel || wish.level === 'silent' || wish.level === 'error' ? wish.level : 'warn');
  const isLevelEnabled = (name: string): boolean => levels.indexOf(name as Level) >= lowest;
  const writes = (name: Written) => (fields: object, message: string) => {
    if (isLevelEnabled(name)) write(name, part, fields, message);
  };
  return {
    ...{ trace: writes('trace'), debug: writes('debug'), info: writes('info'), warn: writes('warn') },
    isLevelEnabled,
    part: (name) => partLogger(name, wish, write),
  };
}

/** `path: /tmp/x; probes: a, b`. */
function fieldsText(fields: object, before: string, between: string, behind: string): string {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  if (known.length === 0) return '';
  return `${before}${known.map(([name, value]) => `${name}: ${valueText(value)}`).join(between)}${behind}`;
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

/** `   1.234 debug inject  patches written  probes: 3`, with the seconds since rsptrace began. */
const lineForPeople: Write = (level, part, fields, message) => {
  const head = `${(performance.now() / 1000).toFixed(3).padStart(8)} ${level.padEnd(5)} ${(part ?? '').padEnd(7)}`;
  writeMessage(`${visible(`${head} ${message}${fieldsText(fields, '  ', '; ', '')}`)}\n`);
};

let pinoLogger: Pick<Logger, Written> | undefined;

/** pino is loaded with the first line that is written, because most commands write none. */
const jsonLine: Write = (level, part, fields, message) => {
  pinoLogger ??= openPino();
  pinoLogger[level](part === undefined ? fields : { part, ...fields }, message);
};

function openPino(): Pick<Logger, Written> {
  const { pino } = createRequire(import.meta.url)('pino') as typeof import('pino');
  return pino({ level: 'trace', base: null }, { write: (line) => writeMessage(visibleJson(line)) });
}
