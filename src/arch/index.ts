import { RsptraceError } from '../base/errors.js';
import { aarch64 } from './aarch64/index.js';
import type { Architecture } from './architecture.js';
import { loongarch64 } from './loongarch64/index.js';
import { riscv64 } from './riscv64/index.js';
import { x86_64 } from './x86_64/index.js';

export type {
  Architecture,
  Capabilities,
  CompleteArchitecture,
  Identity,
  RegisterDefaults,
  RegisterModel,
} from './architecture.js';
export type { AggregatePassing, CallingConvention, FloatPassing } from './calls.js';
export type { CodeFlow, FlowStep, MemoryOperand, MemoryPlace } from './code-flow.js';
export type { CodeReferences, Leaving, ScanOptions } from './code-references.js';
export type {
  CallersFrame,
  CodeRange,
  CodeReading,
  Confidence,
  EntryValues,
  FrameAt,
  FrameModel,
  FunctionFrames,
} from './frames/frame-model.js';
export type { StackSwitch } from './frames/stack-switch.js';
export { type CodePath, type Step, usualPath } from './inject/code-path.js';
export type { Displaced, DisplacedInside, FunctionExit, Hop, PatchKind } from './inject/displaced.js';
export { type HookFrame, hookMark, hookMarkBytes, markedHook } from './inject/framed-code.js';
export type { AssemblyLine, CopySteps, ProbeCode } from './inject/probe-code.js';
export * from './inject/probe-code.js';
export type { ClockSamples, CounterCalibration, ProcessCode } from './inject/process-code.js';
export {
  bucketCount,
  bucketOf,
  type Condition,
  type Counted,
  type Counter,
  type ExtentCopy,
  type FieldSource,
  type HartSource,
  type IntegerIn,
  type LoadBase,
  type OuterCopy,
  type RecordField,
  wordsOf,
} from './inject/record-parts.js';
export { controlBlock, looksAtOnce, type RingGeometry } from './inject/ring-contract.js';
export {
  type EntryTrampoline,
  type FrameNote,
  type FrameNotes,
  frameNoteBytes,
  type InnerTrampoline,
} from './inject/trampolines.js';
export type { Effects, EmulatedInstruction, InstructionModel, MemoryAccess } from './instructions.js';
export type { CallRegisters, LinuxCall, LinuxModel, SystemCallModel } from './linux.js';
export type { ArgumentKind, CallSignature } from './linux-arguments.js';
export { beginsAgain, linuxError } from './linux-calls.js';
export { namedText } from './linux-flags.js';
export type { CounterRegister, GuestClock, ResetModel, ResetVectorAt } from './machine.js';
export { PM_HZ, PM_WRAP, pmTicks, pmTimerPort, readPmTimer } from './machine.js';
export type {
  AddressSpace,
  AddressSpaces,
  LargePageTable,
  Mapping,
  PageSearch,
  Translation,
} from './pages/address-space.js';
export { walkNow } from './pages/page-walk.js';
export {
  type BelowFirmware,
  type Privilege,
  type PrivilegeModel,
  type Standing,
  unknownStanding,
} from './privilege.js';
export type { Paging, SystemRegister, SystemRegisters, SystemState } from './system-registers.js';
export type {
  Interrupted,
  Trap,
  TrapEntry,
  TrapExit,
  TrapKind,
  TrapModel,
  TrapRead,
  TrapSetter,
  TrapTable,
} from './traps.js';

const all: Architecture[] = [riscv64, x86_64, aarch64, loongarch64];

/** Every known architecture: rsptrace's own, and the registered ones. */
export function architectures(): readonly Architecture[] {
  return all;
}

/**
 * Adds an architecture, for the whole process. Call it before `prepare` and `connect`. Adding the same object again
 * does nothing.
 * @throws RsptraceError `ARCH_KNOWN` if another one has the same name, `elfMachine`, or one of its `gdbNames`
 */
export function registerArchitecture(architecture: Architecture): void {
  if (all.includes(architecture)) return;
  const same = all.find(
    ({ name, elfMachine, gdbNames }) =>
      name === architecture.name ||
      elfMachine === architecture.elfMachine ||
      gdbNames.some((each) => architecture.gdbNames.includes(each)),
  );
  if (same) {
    throw new RsptraceError(
      'ARCH_KNOWN',
      `the architecture ${architecture.name} cannot be told from ${same.name}, which is known`,
      {
        hint: 'give it a name, an e_machine and names of gdb that no other has',
      },
    );
  }
  all.push(architecture);
}

/** The architecture of an ELF's `e_machine`, or undefined for one that is not supported. */
export function architectureOf(elfMachine: number): Architecture | undefined {
  return all.find((architecture) => architecture.elfMachine === elfMachine);
}

/** The architecture that a target description's `<architecture>` names (`riscv:rv64`, `i386:x86-64`), or undefined. */
export function architectureNamed(gdbName: string): Architecture | undefined {
  return all.find((architecture) => architecture.gdbNames.includes(gdbName));
}

export { aarch64, loongarch64, riscv64, x86_64 };
