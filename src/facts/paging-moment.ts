// When a kernel's final page table is in use. What turns translation on is one instruction:
//   riscv64  csrrw/csrrs/csrrc[i] of satp (CSR 0x180), other than those that only read it or write zero
//   x86_64   every 64-bit kernel pages
import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';

const PF_X = 1;
const PT_LOAD = 1;
const SATP = 0x180;

/** Whether a program's code can turn paging on. Without that, addresses are physical for as long as it runs. */
export function turnsPagingOn(elf: ElfFile, arch: Architecture): boolean {
  if (arch.name === 'x86_64') return true;
  return elf.segments.some((segment) => {
    if (segment.type !== PT_LOAD || (segment.flags & PF_X) === 0) return false;
    const code = elf.bytesAt(segment.address, segment.fileSize);
    return code !== undefined && writesSatp(code);
  });
}

/** Looks at every two bytes: data that reads like the instruction costs a later start, and nothing else. */
function writesSatp(code: Uint8Array): boolean {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  for (let at = 0; at + 4 <= code.length; at += 2) {
    const word = view.getUint32(at, true);
    // imm[31:20] = CSR | rs1 or uimm [19:15] | funct3 [14:12] | rd [11:7] | 1110011
    if ((word & 0x7f) !== 0x73 || word >>> 20 !== SATP) continue;
    // funct3 0 and 4 are no CSR instructions; rs1 x0 and uimm 0 write zero (csrrw) or nothing (csrrs, csrrc).
    if ((word & 0x3000) !== 0 && (word & 0xf_8000) !== 0) return true;
  }
  return false;
}

/**
 * An address at which the final page table is in use, for kernels that are known: Linux calls `rest_init` last of its boot
 * (init/main.c), behind setup_vm_final and cleanup_highmap. Undefined for others, of which the first probe that is hit may tell.
 */
export function pagingIsFinal(elf: ElfFile): Addr | undefined {
  return elf.symbols.named('rest_init').find(({ type }) => type === 'function')?.address;
}
