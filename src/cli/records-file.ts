import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { RsptraceError } from '../base/errors.js';
import { headOf } from '../base/file-bytes.js';
import { isRawLog } from '../inject/index.js';
import type { LogRequest } from '../record/index.js';
import { formats } from '../trace/index.js';
import { isThere } from './open-output.js';
import type { Option } from './options/option.js';
import { type RecordingArguments, recordingOptions } from './options/recording.js';

const extension = '.records';

/** The options that decide what events a recording has. */
const asking = [
  ...(['probe', 'debug-file', 'debug-dir', 'engine', 'exact', 'wakes', 'bt', 'max-depth'] as const),
  ...(['threshold', 'args', 'until'] as const),
];

/** The parts of a command line that decide what events a recording has. */
export type AskedArguments = Pick<RecordingArguments, 'elf' | (typeof asking)[number]> & {
  /** Of `--elf`. */
  readonly programs: readonly string[];
};

/** The same; how many plug-ins there were, because which ones, only who reads the records may say. */
type KeptArguments = AskedArguments & { readonly plugins: number };

/** The file next to a trace that has its records until the trace has all events. */
export function recordsFile(trace: string): string {
  return `${trace}${extension}`;
}

/** The trace of this name has records, and no events. */
export function areTrace(output: string): boolean {
  return output.toLowerCase().endsWith(extension);
}

/** Whether a file is one of records, whatever its name; or is called so, and is nothing else that is known. */
export function hasRecords(path: string): boolean {
  try {
    const head = headOf(path);
    if (head === undefined) return false;
    return isRawLog(head.bytes) || (areTrace(path) && !formats.some((one) => one.recognizes(head)));
  } catch {
    // Who reads it says why it cannot be read.
    return false;
  }
}

/** What lies where the records will goes, if it is an earlier recording's. Throws `OUTPUT_EXISTS` for other files. */
export function refuseForeignRecords({ output, force }: RecordingArguments): void {
  const path = recordsFile(output);
  if (force || areTrace(output) || !isThere(path)) return;
  const { bytes } = headOf(path) ?? {};
  if (bytes && isRawLog(bytes)) return;
  throw new RsptraceError('OUTPUT_EXISTS', `${path}, where the records of the recording go, is there already`, {
    hint: 'name another file with -o, or have it overwritten with --force',
  });
}

/** Undefined where nothing can be kept: the trace goes into a pipe or a device. */
export function recordsRequest(args: RecordingArguments): LogRequest | undefined {
  const stat = statSync(args.output, { throwIfNoEntry: false });
  if (stat && !stat.isFile() && !stat.isDirectory()) return undefined;
  const asked: KeptArguments = {
    ...(Object.fromEntries(asking.map((name) => [name, args[name]])) as Pick<KeptArguments, (typeof asking)[number]>),
    ...{ elf: resolve(args.elf), programs: args.programs.map((one) => resolve(one)) },
    'debug-file': args['debug-file'] && resolve(args['debug-file']),
    'debug-dir': args['debug-dir'].map((one) => resolve(one)),
    plugins: args.plugin.length,
  };
  if (areTrace(args.output)) return { path: args.output, asked, keeps: true, isTrace: true };
  return { path: recordsFile(args.output), asked, keeps: args['keep-records'] };
}

const ofOthers: Readonly<Record<Exclude<keyof KeptArguments, (typeof asking)[number]>, (value: unknown) => boolean>> = {
  elf: (value) => typeof value === 'string',
  programs: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
  plugins: (value) => Number.isSafeInteger(value),
};

/**
 * What {@link recordsRequest} has asked for, read back.
 * @throws RsptraceError `RECORDS_DAMAGED`
 */
export function askedOf(asked: object): KeptArguments {
  const values: Readonly<Record<string, unknown>> = { ...asked };
  const isRight = (name: (typeof asking)[number]): boolean => {
    const { is, default: usual }: Option<unknown> = recordingOptions[name];
    return is(values[name]) || (values[name] === undefined && usual === undefined);
  };
  const wrong =
    asking.find((name) => !isRight(name)) ?? Object.entries(ofOthers).find(([name, is]) => !is(values[name]))?.[0];
  if (wrong === undefined) return asked as KeptArguments;
  throw new RsptraceError('RECORDS_DAMAGED', `the records do not say what was asked for: ${wrong}`);
}
