import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DiskRoom } from '../base/disk-room.js';
import { RsptraceError } from '../base/errors.js';
import { engineNames } from '../engines/index.js';
import type { LogRequest } from '../record/index.js';
import type { RecordingArguments } from './options.js';

/** The parts of a command line that decide what events a recording has. */
export type AskedArguments = Pick<
  RecordingArguments,
  | 'elf'
  | 'probe'
  | 'debug-file'
  | 'debug-dir'
  | 'engine'
  | 'exact'
  | 'wakes'
  | 'bt'
  | 'max-depth'
  | 'threshold'
  | 'args'
  | 'until'
>;

/**
 * The same; how many plug-ins there were, because which ones, only who recovers may say; whether the guest's console
 * came through rsptrace.
 */
type KeptArguments = AskedArguments & { readonly plugins: number; readonly console: boolean };

/** The file beside a trace that has its records until the trace has all events. */
export function recordsFile(trace: string): string {
  return `${trace}.records`;
}

/** Undefined where nothing can be kept: the trace goes into a pipe or a device. */
export function recordsRequest(args: RecordingArguments, room: DiskRoom): LogRequest | undefined {
  const stat = statSync(args.output, { throwIfNoEntry: false });
  if (stat && !stat.isFile() && !stat.isDirectory()) return undefined;
  const { probe, engine, exact, wakes, bt, threshold, until } = args;
  const debug = {
    'debug-file': args['debug-file'] && resolve(args['debug-file']),
    'debug-dir': args['debug-dir'].map((one) => resolve(one)),
  };
  const asked: KeptArguments = {
    ...{ elf: resolve(args.elf), probe, ...debug, engine, exact, wakes, bt, threshold, until },
    ...{ 'max-depth': args['max-depth'], args: args.args, plugins: args.plugin.length, console: 'command' in args },
  };
  return { path: recordsFile(args.output), asked, room, keeps: args['keep-records'] };
}

const kinds: { readonly [name in keyof Required<KeptArguments>]: (value: unknown) => boolean } = {
  elf: isText,
  probe: areTexts,
  'debug-file': orMissing(isText),
  'debug-dir': areTexts,
  engine: (value) => engineNames.some((name) => name === value),
  exact: isFlag,
  wakes: (value) => value === 'auto' || value === 'always' || value === 'never',
  bt: orMissing(isCount),
  'max-depth': orMissing(isCount),
  threshold: orMissing(isCount),
  args: isFlag,
  until: orMissing(isText),
  console: isFlag,
  plugins: (value) => Number.isSafeInteger(value),
};

/**
 * What {@link recordsRequest} has asked for, read back.
 * @throws RsptraceError `RECORDS_DAMAGED`
 */
export function askedOf(asked: object): KeptArguments {
  const values: Readonly<Record<string, unknown>> = { ...asked };
  const wrong = Object.entries(kinds).find(([name, is]) => !is(values[name]));
  if (!wrong) return asked as KeptArguments;
  throw new RsptraceError('RECORDS_DAMAGED', `the records do not say what was asked for: ${wrong[0]}`);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isFlag(value: unknown): boolean {
  return typeof value === 'boolean';
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && value > 0;
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}

function orMissing(is: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || is(value);
}
