/*
 * Signals as the protocol numbers them (gdb/signals.def, include/gdb/signals.h). A system has numbers of its own
 * (signal(7)): SIGBUS is 10 on the wire and 7 on Linux. Here one becomes the other, both ways, so that nobody else
 * knows the protocol's.
 */

import type { StopReply } from './stop-reply.js';

/** By the protocol's numbers. */
const names: readonly (string | undefined)[] = [
  ...[undefined, 'HUP', 'INT', 'QUIT', 'ILL', 'TRAP', 'ABRT', 'EMT', 'FPE', 'KILL', 'BUS', 'SEGV', 'SYS', 'PIPE'],
  ...['ALRM', 'TERM', 'URG', 'STOP', 'TSTP', 'CONT', 'CHLD', 'TTIN', 'TTOU', 'IO', 'XCPU', 'XFSZ', 'VTALRM', 'PROF'],
  ...['WINCH', 'LOST', 'USR1', 'USR2', 'PWR'],
];

/** As Linux has it. */
const SIGSTOP = 19;

/** SIG33 to SIG63 are 45 to 75, SIG32 is 77, SIG64 to SIG127 are 78 to 141. */
function nameOf(signal: number): string | undefined {
  if (signal >= 45 && signal <= 75) return `${signal - 12}`;
  if (signal === 77) return '32';
  if (signal >= 78 && signal <= 141) return `${signal - 14}`;
  return names[signal];
}

/** The protocol's numbers and a system's. */
export class SignalNumbers {
  readonly #toSystem = new Map<number, number>();
  readonly #toProtocol = new Map<number, number>();
  readonly #names: readonly string[] | undefined;
  /** SIGSTOP, as stops have it here. */
  readonly stop: number;

  /** `system`: the names by the system's numbers, without SIG; undefined where the protocol's numbers are kept. */
  constructor(system: readonly string[] | undefined, isMapped: boolean) {
    this.#names = system;
    this.stop = isMapped && !system ? names.indexOf('STOP') : SIGSTOP;
    if (!system || !isMapped) return;
    for (let signal = 1; signal < 142; signal++) {
      const name = nameOf(signal);
      const number = name === undefined ? -1 : /^\d/.test(name) ? Number(name) : system.indexOf(name);
      this.#toSystem.set(signal, Math.max(number, 0));
      if (number > 0) this.#toProtocol.set(number, signal);
    }
  }

  /** The stop with the system's number; 0 for a signal that the system does not have. */
  inSystem(stop: StopReply): StopReply {
    if (stop.kind !== 'signal' && stop.kind !== 'terminated') return stop;
    const signal = this.#toSystem.get(stop.signal) ?? stop.signal;
    const name = stop.kind === 'terminated' ? this.#nameOf(signal) : undefined;
    if (signal === stop.signal && name === undefined) return stop;
    return { ...stop, signal, ...(name === undefined ? {} : { name }) };
  }

  /** The protocol's number of a system's signal. */
  protocol(signal: number): number {
    return this.#toProtocol.get(signal) ?? signal;
  }

  #nameOf(signal: number): string | undefined {
    const name = this.#names?.[signal];
    return name ? `SIG${name}` : undefined;
  }
}
