/** One entry of manifest.json. */
export interface Guest {
  readonly name: string;
  /** What this guest is for, one sentence. */
  readonly purpose: string;
  readonly arch: 'riscv64' | 'x86_64' | 'aarch64' | 'loongarch64';
  /** Folder that it is built from, `kern` where absent, and the file in its `src`, `main` where absent. */
  readonly source?: string;
  readonly main?: string;
  /** Guests whose ELFs it holds, in the order of `LAB_EMBED_0`, `LAB_EMBED_1`, ... */
  readonly embeds?: readonly string[];
  /** Privilege mode: S (under OpenSBI) or M on riscv64, long mode on x86_64; U: a program that such a kernel runs. */
  readonly mode: 'S' | 'M' | 'long' | 'U';
  readonly opt: '0' | '2' | '3';
  /** Sizes of the workload that differ from the default, as build-time variables: { LAB_ITERS: '20000' }. */
  readonly env: Readonly<Record<string, string>>;
  /** rustc flags of the guest's own crate beyond those every guest gets. core and alloc are the same for all. */
  readonly flags: readonly string[];
  /** DWARF version, mangling, frame pointers and unwind tables of the guest's own crate. */
  readonly dwarf: 4 | 5;
  readonly mangling: 'v0' | 'legacy';
  readonly framePointers: boolean;
  readonly unwindTables: boolean;
  /** argv to boot it with QEMU, program first; '{elf}' stands for the ELF's path. Empty for a program. */
  readonly qemu: readonly string[];
  /** QEMU's exit status after a clean end. */
  readonly exit: number;
  /** What `LAB checksum` prints; empty if the guest prints none. */
  readonly checksum: string;
  readonly rustc: string;
  /** Hash and size in bytes of the unpacked ELF. */
  readonly sha256: string;
  readonly size: number;
}

export const DIR: string;
export const MANIFEST: string;
export function sha256(bytes: Uint8Array): string;
export function readManifest(): Guest[];
export function findGuest(name: string): Guest;
export function unpack(guest: Guest): string;
