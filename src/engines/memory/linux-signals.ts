/*
 * Signals as the protocol numbers them (gdb/signals.def, include/gdb/signals.h), and as Linux does on x86_64
 * (signal(7)).
 */

export const GDB_SIGNAL = { INT: 2, ILL: 4, TRAP: 5, SEGV: 11, SYS: 12 } as const;

/**
 * By GDB's numbers.
 *
 *     HUP INT QUIT ILL TRAP ABRT FPE KILL BUS SEGV SYS PIPE ALRM TERM URG STOP
 *     TSTP CONT CHLD TTIN TTOU IO XCPU XFSZ VTALRM PROF WINCH USR1 USR2 PWR
 */
const linuxOf = new Map<number, number>([
  [1, 1],
  [2, 2],
  [3, 3],
  [4, 4],
  [5, 5],
  [6, 6],
  [8, 8],
  [9, 9],
  [10, 7],
  [11, 11],
  [12, 31],
  [13, 13],
  [14, 14],
  [15, 15],
  [16, 23],
  [17, 19],
  [18, 20],
  [19, 18],
  [20, 17],
  [21, 21],
  [22, 22],
  [23, 29],
  [24, 24],
  [25, 25],
  [26, 26],
  [27, 27],
  [28, 28],
  [30, 10],
  [31, 12],
  [32, 30],
]);

/** Linux's number of a signal that a stub has reported; undefined if Linux does not have it. */
export function linuxSignal(signal: number): number | undefined {
  // SIG33 to SIG63 are 45 to 75, SIG32 is 77, SIG64 is 78.
  if (signal >= 45 && signal <= 75) return signal - 12;
  if (signal === 77) return 32;
  if (signal === 78) return 64;
  return linuxOf.get(signal);
}
