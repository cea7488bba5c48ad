import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DiskRoom } from '../base/disk-room.js';
import type { LogRequest } from '../record/index.js';
import type { RecordingArguments } from './options/recording.js';

/** The parts of a command line that decide what events a recording has. */
export type AskedArguments = Pick<
  RecordingArguments,
  'elf' | 'probe' | 'debug-file' | 'debug-dir' | 'engine' | 'exact'
> &
  Pick<RecordingArguments, 'wakes' | 'bt' | 'max-depth' | 'threshold' | 'args' | 'until'>;

/**
 * The same; how many plug-ins there were, because which ones, only who recovers may say; whether the guest's console
 * came through rsptrace.
 */
export type KeptArguments = AskedArguments & { readonly plugins: number; readonly console: boolean };

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
