import { closeSync, fstatSync, ftruncateSync, readdirSync, statSync, writeSync } from 'node:fs';
import { type ErrorCode, messageOf, RsptraceError } from '../base/errors.js';
import { abandon, type OpenedFile, openLocked } from '../base/locked-file.js';
import type { Logger } from '../base/logger.js';
import { WireRecorder } from '../rsp/index.js';
import { note } from './failure.js';
import type { CommonArguments } from './options/common.js';

/** A file that an option names for writing. */
export interface Output {
  readonly option: string;
  readonly path: string;
  /** Its purpose, as in `the console cannot be kept in ...`, and the code of that error. */
  readonly failure: { readonly code: ErrorCode; readonly sentence: string };
}

/**
 * Opens a file that an option names, locked and emptied. Whether one may be there already is checked before
 * (./files.ts). Throws `OUTPUT_IN_USE`, and the output's own code.
 */
export function openOutput(output: Output): number {
  const { path } = output;
  let opened: OpenedFile | undefined;
  try {
    opened = openLocked(path, note);
    if (fstatSync(opened.fd).isFile()) ftruncateSync(opened.fd, 0);
    return opened.fd;
  } catch (error) {
    if (opened) abandon(path, opened);
    throw error instanceof RsptraceError ? error : cannotWrite(output, error);
  }
}

/** Writes a whole file. Throws as {@link openOutput}. */
export function writeOutput(output: Output, text: string): void {
  const fd = openOutput(output);
  try {
    writeAll(fd, Buffer.from(text));
  } catch (error) {
    throw cannotWrite(output, error);
  } finally {
    closeSync(fd);
  }
}

/** Writes every byte, because one write may take a part only. Throws the system's error. */
export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}

/** Something would be lost: an empty file, an empty folder, a pipe and a terminal hold nothing. */
export function isThere(path: string): boolean {
  try {
    const found = statSync(path);
    return found.isDirectory() ? readdirSync(path).length > 0 : found.isFile() && found.size > 0;
  } catch {
    // It is not there, or cannot be looked at: opening will report that.
    return false;
  }
}

function cannotWrite({ path, failure, option }: Output, error: unknown): RsptraceError {
  return new RsptraceError(failure.code, `${failure.sentence} ${path}: ${messageOf(error)}`, {
    hint: `name a file that can be written with ${option}`,
    cause: error,
  });
}

/** Where nothing passes over a wire, that is said: else a file would be missed. */
export function sayWithoutWire({ 'record-wire': path }: Pick<CommonArguments, 'record-wire'>): void {
  note(path !== undefined && `nothing passes over a wire here, so that --record-wire does not write ${path}`);
}

/** The file of --record-wire. It is opened first, so that a wrong path costs nothing. */
export function wireRecorder(args: CommonArguments, logger: Logger, launches = false): WireRecorder | undefined {
  const path = args['record-wire'];
  if (path === undefined) return undefined;
  const failure = { code: 'OUTPUT_CANNOT_WRITE', sentence: 'The wire cannot be recorded in' } as const;
  const fd = openOutput({ option: '--record-wire', path, failure });
  return new WireRecorder(path, logger, launches, fd);
}
