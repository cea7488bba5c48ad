import type { Logger } from '../base/logger.js';
import { WireRecorder } from '../rsp/index.js';
import { openOutput } from './open-output.js';
import type { CommonArguments } from './options/common.js';

/** The file of --record-wire. It is opened first, so that a wrong path costs nothing. */
export function wireRecorder(args: CommonArguments, logger: Logger, launches = false): WireRecorder | undefined {
  const path = args['record-wire'];
  if (path === undefined) return undefined;
  const failure = { code: 'OUTPUT_CANNOT_WRITE', sentence: 'The wire cannot be recorded in' } as const;
  const fd = openOutput({ option: '--record-wire', path, failure });
  return new WireRecorder(path, logger, launches, fd);
}
