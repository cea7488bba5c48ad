// Recordings that are shown while they go on, and not kept: graph --fn, top --polls.
import { resolve } from 'node:path';
import { placeAtStart, placeInProcess } from '../target/index.js';
import { executableOf, processNamed, programNamed } from './local-process.js';
import { defaultsOf } from './options/option.js';
import { type RecordingArguments, recordingOptions, remoteOptions } from './options/recording.js';
import { recordRunning, recordStarted } from './process.js';
import { recordAt } from './record.js';
import type { Prepared, withRecording } from './recording/prepare.js';
import type { Recorded, SessionOptions } from './recording/session.js';

export type LiveArguments = RecordingArguments & { readonly reconnect: boolean };

/** What is recorded: a target behind a stub, a process that runs, or a program that is started. */
export interface LiveTarget {
  /** Its file. */
  readonly elf: string;
  readonly isProcess: boolean;
  readonly place: Parameters<typeof withRecording>[2];
  readonly record: (
    prepared: Prepared,
    asked: LiveArguments,
    watched?: Pick<SessionOptions, 'ending' | 'watcher'>,
  ) => Promise<Recorded>;
}

interface TargetWords {
  readonly elf: string | undefined;
  readonly pid: string | undefined;
  readonly remote: string | undefined;
  /** The arguments of a program that is started. */
  readonly command?: readonly string[];
}

export function liveTarget({ elf, pid, remote, command = [] }: TargetWords): LiveTarget {
  if (pid !== undefined) {
    const number = processNamed(pid);
    return {
      elf: elf ?? executableOf(number),
      isProcess: true,
      place: (file) => placeInProcess(number, file),
      record: (prepared, _, watched) => recordRunning(prepared, number, watched),
    };
  }
  if (remote !== undefined) {
    const record: LiveTarget['record'] = (prepared, asked, watched) =>
      recordAt({ ...asked, remote }, prepared, watched);
    return { elf: elf ?? '', isProcess: false, place: undefined, record };
  }
  const program = programNamed(elf ?? '');
  const line = [resolve(program), ...command];
  return {
    ...{ elf: program, isProcess: true, place: placeAtStart },
    record: (prepared, _, watched) => recordStarted(prepared, line, watched),
  };
}

/** What `rsptrace --remote` would be given: nothing is kept, and nothing said of findings. */
export const unkept = {
  ...defaultsOf({ ...recordingOptions, reconnect: remoteOptions.reconnect }),
  ...({ output: '/dev/null', findings: 'off' } as const),
};
