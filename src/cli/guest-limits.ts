import { RsptraceError } from '../base/errors.js';
import type { GuestLimits } from '../check/index.js';
import type { GuestArguments } from './options/recording.js';

/** `usual`: the exit statuses that mean success if none is given. */
export function guestLimits(args: GuestArguments, usual: readonly number[]): GuestLimits {
  const given = args['success-status'];
  return {
    expected: args['console-expect'],
    failing: args['console-fail'],
    until: args['console-until'],
    hostMs: args['time-limit'],
    guestNs: args['guest-time-limit'],
    success: given.length > 0 ? given : usual,
  };
}

/** What a program's output would have to come through us for, or a machine be there. Throws `USAGE`. */
export function refuseMachineOptions(args: GuestArguments & { readonly console: string | undefined }): void {
  const ofConsole = (['console', 'console-expect', 'console-fail', 'console-until'] as const).find(
    (name) => args[name] !== undefined && args[name].length > 0,
  );
  if (ofConsole !== undefined) {
    throw new RsptraceError('USAGE', `--${ofConsole} is for machines: what a program writes does not pass rsptrace`, {
      hint: 'redirect its output, and look at that',
    });
  }
  if (args.deterministic) {
    throw new RsptraceError('USAGE', '--deterministic is for machines: no program of this one runs twice alike', {
      hint: 'leave it out',
    });
  }
}
