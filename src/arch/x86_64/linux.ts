import { genericSignals, type LinuxModel, type SystemCallModel } from '../linux.js';
import { x86Signatures } from '../linux-arguments.js';
import { x86Calls } from '../linux-calls.js';

const parameters = ['rdi', 'rsi', 'rdx', 'r10', 'r8', 'r9'];
/** The code segment of 64-bit programs on Linux. */
const userCode64 = 0x33n;

/**
 * System V ABI AMD64, A.2.1; numbers of arch/x86/entry/syscalls/syscall_64.tbl in Linux.
 *
 *   rax number | rdi rsi rdx r10 r8 r9 arguments -> rax result | rcx r11 destroyed
 */
const systemCalls: SystemCallModel = {
  instruction: Uint8Array.of(0x0f, 0x05),
  number: 'rax',
  result: 'rax',
  arguments: parameters,
  changes: ['rax', 'rcx', 'r11', ...parameters, 'rip', 'eflags', 'orig_rax'],
  restart: 'orig_rax',
  threadPointer: 'fs_base',
  numbers: {
    close: 3,
    mmap: 9,
    mprotect: 10,
    munmap: 11,
    rt_sigprocmask: 14,
    getpid: 39,
    ftruncate: 77,
    gettid: 186,
    tgkill: 234,
    memfd_create: 319,
  },
  refused(registers, status) {
    if (registers.register('cs') !== userCode64) return 'the process does not run 64-bit code';
    if (status !== undefined && /^x86_Thread_features:.*\bshstk\b/m.test(status))
      return 'the process has shadow stacks, which do not allow return addresses to be changed';
    return undefined;
  },
};

export const linux: LinuxModel = {
  callName: x86Calls,
  callSignature: x86Signatures,
  // -ENOSYS, arch/x86/entry/entry_64.S.
  atCall: { number: 'orig_rax', arguments: parameters, result: 'rax', resultBefore: -38n },
  // arch/x86/include/uapi/asm/ptrace.h
  coreRegisters:
    'r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base'.split(
      ' ',
    ),
  perfRegisters: 'rax rbx rcx rdx rsi rdi rbp rsp rip eflags cs ss ds es fs gs r8 r9 r10 r11 r12 r13 r14 r15'.split(
    ' ',
  ),
  // mov rax, 15 or mov eax, 15; syscall.
  signalReturns: [
    Uint8Array.of(0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05),
    Uint8Array.of(0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05),
  ],
  mappingCalls: [9, 10, 25, 329],
  signals: genericSignals,
  behindTrap: 1,
  isProgram,
  isTrap: (code) => code[0] === 0xcc,
  systemCalls,
  forgottenTraps: { trap: 0xcc, isBehindCall },
};

/** SYSCALL, and no MOV to CR3 (0f 22 /3): every kernel that pages has one. */
function isProgram(code: Uint8Array): boolean {
  const bytes = Buffer.from(code.buffer, code.byteOffset, code.length);
  if (bytes.indexOf(systemCalls.instruction) < 0) return false;
  for (let register = 0xd8; register <= 0xdf; register++)
    if (bytes.indexOf(Uint8Array.of(0x0f, 0x22, register)) >= 0) return false;
  return true;
}

/** Intel SDM volume 2, CALL: e8 rel32; ff /2 with every form of its operand. */
function isBehindCall(code: Uint8Array, at: number): boolean {
  if (code[at - 5] === 0xe8) return true;
  for (let length = 2; length <= 7; length++)
    if (code[at - length] === 0xff && ((code[at - length + 1] ?? 0) & 0x38) === 0x10) return true;
  return false;
}
