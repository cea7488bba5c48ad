// When a kernel's final page table is in use.

import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { isLinux } from './linux.js';
import { keyValues, type QemuOption } from './qemu-options.js';

/**
 * Whether a program's code can turn paging on; else its addresses stay physical. Undefined if page tables are not
 * known.
 */
export function turnsPagingOn(elf: ElfFile, { addressSpaces }: Architecture): boolean | undefined {
  if (!addressSpaces) return undefined;
  return addressSpaces.alwaysPages || tableChanges(elf, addressSpaces).length > 0;
}

/** Why nothing of a hypervisor is patched. */
export const guestsRunIt =
  'the program is a hypervisor, whose guests may run its functions, and what a second page table maps for them is not known';

/**
 * Whether a machine's program is a hypervisor, whose guests may run functions of its own ELF. Linux's run their own
 * kernels.
 */
export async function hasGuests(session: Session, elf: ElfFile, arch: Architecture): Promise<boolean> {
  const { addressSpaces } = arch;
  if (!addressSpaces?.guestPlaces || isLinux(elf)) return false;
  const batch = session.batch();
  const registers = batch.readRegisters(addressSpaces.registers);
  await batch.send();
  return elf.codeParts().some(({ address, bytes }) => {
    const places = addressSpaces.guestPlaces?.(registers.value, bytes) ?? [];
    return places.some((offset) => isInstruction(elf, arch, addOffset(address, offset)));
  });
}

/** More places than kernels have: a breakpoint at each costs time. */
const mostPlaces = 32;

/** Where a program goes on when it has turned paging on, or has changed its table. */
export interface TablePlace {
  /** Where it is linked; and where it is loaded, if that is elsewhere: code that runs before paging runs there. */
  readonly addresses: readonly Addr[];
}

/** All of them, in the order of their addresses. Empty if there is none, or too many. */
export function pageTableChanges(elf: ElfFile, { addressSpaces }: Architecture): readonly TablePlace[] {
  const places = addressSpaces ? tableChanges(elf, addressSpaces) : [];
  return places.length <= mostPlaces ? places : [];
}

function tableChanges(elf: ElfFile, spaces: NonNullable<Architecture['addressSpaces']>): TablePlace[] {
  return elf.codeParts().flatMap(({ address, physical, bytes }) => {
    const starts = address === physical ? [address] : [address, physical];
    return spaces.tableChanges(bytes).map((end) => ({ addresses: starts.map((start) => addOffset(start, end)) }));
  });
}

/**
 * An address at which the final page table is in use, for known kernels. Linux calls `rest_init` at the end of its
 * boot (init/main.c), after setup_vm_final and cleanup_highmap. Undefined for others; there the first hit of a probe
 * may tell.
 */
export function pagingIsFinal(elf: ElfFile): Addr | undefined {
  return elf.symbols.named('rest_init').find(({ type }) => type === 'function')?.address;
}

// Where a kernel's code ends the machine that it runs on.

/** Longest instruction of all architectures. */
const longest = 16;
/** More places than kernels have: then these are no such places. */
const mostEnds = 16;

/**
 * Instructions soon behind which a program ends its machine, as far as its code shows. Each is verified to be an
 * instruction of the function that it lies in. Empty for Linux, whose drivers learn at runtime how to do it. Empty
 * where too many places are found.
 * @param options of QEMU's command line, which may name an exit device
 */
export function powerOffPlaces(elf: ElfFile, arch: Architecture, options: readonly QemuOption[]): readonly Addr[] {
  const { powerOff } = arch;
  if (!powerOff || isLinux(elf)) return [];
  const ports = exitPorts(options);
  const guesses = elf
    .codeParts()
    .flatMap(({ address, bytes }) => powerOff.places(bytes, ports).map((at) => addOffset(address, at)));
  const places = guesses.filter((at) => isInstruction(elf, arch, at));
  return places.length <= mostEnds ? places : [];
}

/** Whether an instruction of the function around begins at this address, as far as the function's code shows. */
function isInstruction(elf: ElfFile, { codeFlow }: Architecture, at: Addr): boolean {
  const code = codeAround(elf, at);
  return !!code && !!codeFlow?.steps(code.bytes, code.address).some(({ address }) => address === at);
}

/** From the symbol before an address on: a whole function, or assembly behind a label, up to the address at least. */
function codeAround(elf: ElfFile, at: Addr): { readonly address: Addr; readonly bytes: Uint8Array } | undefined {
  const symbol = elf.symbols.at(at);
  if (symbol === undefined || symbol.type === 'object') return undefined;
  const { address, size } = symbol;
  const bytes = elf.bytesAt(address, size > 0 ? size : Number(at - address) + longest);
  return bytes && { address, bytes };
}

/** The ports of `-device isa-debug-exit` (QEMU hw/misc/debugexit.c), whose default is 0x501. */
function exitPorts(options: readonly QemuOption[]): number[] {
  return options.flatMap(({ name, value }) => {
    const keys = name === 'device' ? keyValues(value, 'driver') : undefined;
    if (keys?.get('driver') !== 'isa-debug-exit') return [];
    return [Number(keys.get('iobase') ?? 0x501)];
  });
}
