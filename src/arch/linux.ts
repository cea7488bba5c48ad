import type { RegisterReader } from '../base/memory-reader.js';
import type { CallSignatures } from './linux-arguments.js';
import type { CallNames } from './linux-calls.js';

/** What is known of processes on a Linux of this architecture. */
export interface LinuxModel {
  /** Numbers of the system calls that load code: mmap, mprotect, mremap, pkey_mprotect. */
  readonly mappingCalls: readonly number[];
  /** What system calls are called. */
  readonly callName?: CallNames;
  /** What they are given, by their names. */
  readonly callSignature?: CallSignatures;
  /** What the registers of a thread hold where its system call begins, and where it has ended. */
  readonly atCall?: CallRegisters;
  /** The names of signals by their numbers, without SIG (signal(7)). */
  readonly signals: readonly string[];
  /** How many bytes the pc is behind a trap instruction when the program gets its SIGTRAP. */
  readonly behindTrap: number;
  /** Whether code asks a kernel for something, and does nothing that only a kernel may. */
  isProgram?(code: Uint8Array): boolean;
  /** Whether code begins with a trap instruction. */
  isTrap(code: Uint8Array): boolean;
  /** What begins with one of these returns from a signal's handler (rt_sigreturn). */
  readonly signalReturns?: readonly Uint8Array[];
  /** General registers in the order of a core file's `pr_reg` (struct elf_prstatus): `user_regs_struct`. */
  readonly coreRegisters?: readonly string[];
  /** Registers in the order of perf's samples (arch/ARCH/include/uapi/asm/perf_regs.h), by their bits there. */
  readonly perfRegisters?: readonly string[];
  /** QEMU's dump of a machine has no pc among them: in its place is where the last exception was to return to. */
  readonly dumpsLackPc?: boolean;
  /** How a stopped thread is made to run system calls for the client. */
  readonly systemCalls?: SystemCallModel;
  /** How to find breakpoints that a gdbserver keeps after its client has disconnected. */
  readonly forgottenTraps?: {
    /** The one byte of the trap instruction. */
    readonly trap: number;
    /**
     * Whether a call may end at this offset of code, because a client may have had a breakpoint at a return address.
     */
    isBehindCall(code: Uint8Array, at: number): boolean;
  };
}

export interface CallRegisters {
  readonly number: string;
  readonly arguments: readonly string[];
  readonly result: string;
  /** Holds this where a call begins; undefined: nothing says whether it does. */
  readonly resultBefore?: bigint;
}

/** include/uapi/asm-generic/signal.h; x86 has the same. */
export const genericSignals: readonly string[] = [
  ...['', 'HUP', 'INT', 'QUIT', 'ILL', 'TRAP', 'ABRT', 'BUS', 'FPE', 'KILL', 'USR1', 'SEGV', 'USR2', 'PIPE', 'ALRM'],
  ...['TERM', 'STKFLT', 'CHLD', 'CONT', 'STOP', 'TSTP', 'TTIN', 'TTOU', 'URG', 'XCPU', 'XFSZ', 'VTALRM', 'PROF'],
  ...['WINCH', 'IO', 'PWR', 'SYS'],
];

/** System calls that are injected into a process. */
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
  /** The register for the call's number, which also gets its result. */
  readonly number: string;
  readonly result: string;
  readonly arguments: readonly string[];
  /** All registers that the call and its preparation may change. */
  readonly changes: readonly string[];
  /** The kernel's register that is -1 if no call has to be restarted. Only the stub of a Linux process has it. */
  readonly restart: string;
  readonly threadPointer: string;
  readonly numbers: Readonly<Record<LinuxCall, number>>;
  /** Why a process must make no call. Found from its registers and, if it can be read, /proc/PID/status. */
  refused(registers: RegisterReader, status: string | undefined): string | undefined;
}
