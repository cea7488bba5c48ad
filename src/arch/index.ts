import type { Architecture } from './architecture.js';
import { riscv64 } from './riscv64/index.js';
import { x86_64 } from './x86_64/index.js';

const all: readonly Architecture[] = [riscv64, x86_64];

/** The architecture of an ELF's `e_machine`, or undefined for one that is not supported. */
export function architectureOf(elfMachine: number): Architecture | undefined {
  return all.find((architecture) => architecture.elfMachine === elfMachine);
}

/** The architecture that a target description's `<architecture>` names (`riscv:rv64`, `i386:x86-64`), or undefined. */
export function architectureNamed(gdbName: string): Architecture | undefined {
  return all.find((architecture) => architecture.gdbNames.includes(gdbName));
}

export type { Architecture, Effects, EmulatedInstruction } from './architecture.js';
export type { CodeRange, Confidence, FrameAt, FrameModel, FunctionFrames } from './frames/frame-model.js';
export { type CodePath, type Step, usualPath } from './inject/code-path.js';
export type { InjectedCall } from './inject/injected-call.js';
export * from './inject/probe-code.js';
export type { AddressSpace, AddressSpaces, LargePageTable, Mapping } from './pages/address-space.js';
export { type Privilege, type Standing, standing, standingRegisters } from './privilege.js';
export { riscv64, x86_64 };
