export { architectureFor } from './architecture-for.js';
export { AT, auxvAddress, readAuxv } from './auxv.js';
export { type BootImage, bootImage } from './boot-image.js';
export { bytesKnown, type CodeState, compareCode, isOwnPage, type KnownCode, pageBytes } from './code-compare.js';
export { connect, knownArchitectures, type TargetOptions } from './connect.js';
export { CopyRoom, roomForCopy } from './copy-room.js';
export { FDT_HEADER, type FdtRange, fdtSize, readFdt, writeFdtSize } from './fdt.js';
export { commandLineOf, GuestRam, type RamChunk, type RamRange } from './guest-ram.js';
export { hartName } from './hart-name.js';
export { hartSource } from './hart-source.js';
export { hasOwnFirmware, runIntoKernel } from './kernel-mode.js';
export { type LetRun, letRun, meanwhile } from './let-run.js';
export { type Libraries, librariesOfProcess, loadedLibraries, mappedLibraries, seeLibraries } from './libraries.js';
export { coreThreads, type LinuxCore, readLinuxCore } from './linux-core.js';
export { changesItsCode, choosesItsPlace, isLinux, stackBytes } from './linux-kernel.js';
export { isLinuxProgram } from './linux-program.js';
export { kernelNotFound, loadedElf, shiftedByAuxv } from './load-bias.js';
export { type MemoryPiece, readMemoryTree } from './memory-tree.js';
export { biasWhenItRuns, isMovedAtBoot, type KernelWait } from './moved-kernel.js';
export { insideKernel } from './other-spaces.js';
export { ownSignal } from './own-signals.js';
export { PacketRam } from './packet-ram.js';
export { pageTableChanges, pagingIsFinal, type TablePlace, turnsPagingOn } from './paging-moment.js';
export { powerOffPlaces } from './power-off-places.js';
export { processLimits } from './process-limits.js';
export { type Mapping, parseMaps } from './process-maps.js';
export {
  memoryOfProcess,
  processMappings,
  processMemory,
} from './process-memory.js';
export { placeAtStart, placeInProcess } from './process-place.js';
export { keyValues, nanosPerInstruction, type QemuOption, qemuOptions, qemuSize, sleeps } from './qemu-options.js';
export { ResetVector } from './reset-vector.js';
export { SpaceNumbers } from './space-numbers.js';
export { unseenHarts, unseenText } from './unseen-harts.js';
export { type CodeCheck, verifyArchitecture, verifyCode, verifyPlace } from './verify-target.js';
export { threadsOf } from './waiting-threads.js';
