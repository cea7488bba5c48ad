export { AT, auxvAddress, entryToCome, readAuxv } from './auxv.js';
export { type BootImage, bootImage } from './boot-image.js';
export { bytesKnown, type CodeState, compareCode, isOwnPage, type KnownCode, pageBytes } from './code-compare.js';
export {
  guestsRunIt,
  hasGuests,
  pageTableChanges,
  pagingIsFinal,
  powerOffPlaces,
  type TablePlace,
  turnsPagingOn,
} from './code-places.js';
export { architectureFor, connect, knownArchitectures, type TargetOptions } from './connect.js';
export { FDT_HEADER, type FdtRange, fdtSize, readFdt, writeFdtSize } from './fdt.js';
export { commandLineOf, GuestRam } from './guest-ram.js';
export { currentAddressSpace, executeOnly, inUserCode, programsRunIt, seenMemory } from './hart-space.js';
export { hartName, hartSource, takesTurns, turnsText, unseenHarts, unseenText } from './harts.js';
export { hasOwnFirmware, runIntoKernel } from './kernel-mode.js';
export { type LetRun, letRun, meanwhile, ownSignal, runFor } from './let-run.js';
export { type Libraries, librariesOfProcess, loadedLibraries, mappedLibraries, seeLibraries } from './libraries.js';
export { changesItsCode, choosesItsPlace, isLinux, isLinuxProgram, memberOfTask, stackBytes } from './linux.js';
export { coreThreads, type LinuxCore, readLinuxCore } from './linux-core.js';
export {
  kernelNotFound,
  loadedElf,
  placeAtStart,
  placeInProcess,
  refuseObject,
  shiftedByAuxv,
  verifyLoadedIn,
} from './load-bias.js';
export { type MemoryPiece, PacketRam, type RamChunk, type RamRange, ramPieces, readMemoryTree } from './machine-ram.js';
export { biasWhenItRuns, isMovedAtBoot, type KernelWait } from './moved-kernel.js';
export { finishOwnCall, sharesMemory } from './own-call.js';
export { limitsOf } from './process-limits.js';
export {
  CopyRoom,
  type Mapping,
  memoryOfProcess,
  parseMaps,
  processMappings,
  processMemory,
  roomForCopy,
} from './process-memory.js';
export { keyValues, nanosPerInstruction, type QemuOption, qemuOptions, qemuSize, sleeps } from './qemu-options.js';
export { ResetVector } from './reset-vector.js';
export { type CodeCheck, insideKernel, verifyArchitecture, verifyCode, verifyPlace } from './verify-target.js';
export { threadAt, threadsOf, type WaitingThread } from './waiting-threads.js';
