import type { RegisterReader } from '../base/memory-reader.js';

/** What is known of processes on a Linux of this architecture. */
export interface LinuxModel {
  /** Numbers of the system calls that bring code: mmap, mprotect, mremap, pkey_mprotect. */
  readonly mappingCalls: readonly number[];
  /** How a stopped thread is made to carry out system calls for the client. */
  readonly systemCalls?: SystemCallModel;
  /** How breakpoints are found that a gdbserver keeps when its client is gone. */
  readonly forgottenTraps?: {
    /** The one byte of the trap instruction. */
    readonly trap: number;
    /** Whether a call may end at this offset of code: a client may have had a breakpoint at a return address. */
    isBehindCall(code: Uint8Array, at: number): boolean;
  };
}

/** System calls that are made in a process. */
export type LinuxCall =
  | 'close'
  | 'mmap'
  | 'mprotect'
  | 'munmap'
  | 'rt_sigprocmask'
  | 'getpid'
  | 'ftruncate'
  | 'gettid'
  | 'tgkill'
  | 'memfd_create';

/** The system call instruction, its registers and numbers (Linux, syscall(2)). */
export interface SystemCallModel {
  readonly instruction: Uint8Array;
  /** The call's number goes in, its result comes out. */
  readonly number: string;
  readonly result: string;
  readonly arguments: readonly string[];
  /** All that a call and its preparation may change. */
  readonly changes: readonly string[];
  /** The register of the kernel's that is -1 where no call has to be restarted. Only a Linux process's stub has it. */
  readonly restart: string;
  readonly numbers: Readonly<Record<LinuxCall, number>>;
  /** Why a process must make no call, from its registers and, where it can be read, /proc/PID/status. */
  refused(registers: RegisterReader, status: string | undefined): string | undefined;
}
