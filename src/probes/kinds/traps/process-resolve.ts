import type { Architecture } from '../../../arch/index.js';
import { RsptraceError } from '../../../base/errors.js';
import { noMatch } from '../../glob.js';
import { whiteList } from '../names.js';
import type { FoundTraps, TrapSpec } from './resolve.js';

/** More than Linux has. */
const mostCalls = 1024;

/**
 * The system calls of a process, which its stub reports.
 * @throws RsptraceError `PROBE_NO_MATCH`, `ARCH_UNSUPPORTED`
 */
export function callsOfProcess(
  { name, linux }: Architecture,
  specs: readonly TrapSpec[],
): Omit<FoundTraps, 'wants' | 'mayWant' | 'seen'> {
  const { atCall, callName } = linux ?? {};
  const text = specs[0]?.text ?? '';
  if (!atCall || !callName) {
    throw new RsptraceError('ARCH_UNSUPPORTED', `what a process has at its system calls is not known of ${name}`, {
      hint: `leave '${text}' out`,
    });
  }
  const calls = Array.from({ length: mostCalls }, (_, number) => `syscall::${callName(number) ?? number}`);
  const includes = specs.filter(({ excludes }) => !excludes);
  const isAll = includes.some(({ glob }) => glob === '**') && includes.length === specs.length;
  const { allows } = whiteList(specs);
  const numbers = calls.flatMap((call, number) => (allows([call], true) ? number : []));
  if (numbers.length === 0) {
    const names = calls.flatMap((_, number) => callName(number) ?? []);
    throw noMatch('system call', includes, names, "'syscall:**' takes all of them");
  }
  return {
    ...{ addresses: [], setters: [], exits: [], places: [], isAll, atCall },
    unmatched: includes.filter(({ matches }) => !calls.some(matches)).map((spec) => spec.text),
    systemCalls: { of: isAll ? 'all' : numbers, text },
  };
}
