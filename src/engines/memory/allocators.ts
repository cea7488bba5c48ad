/*
 * Functions of programs that give memory, of which the arguments are known, and where a call of them is safe:
 *
 *   __rust_alloc(size: usize, align: usize) -> *mut u8      every Rust program's                  library/alloc/src/alloc.rs
 *   void *vmalloc(unsigned long size)                       Linux's, vmalloc_noprof from 6.10 on  include/linux/vmalloc.h
 *
 * Both give null where there is none. Only functions that other objects may call: then the compiler has left their arguments as they are. One that
 * was made local (link-time optimisation) may have lost them.
 */

import type { Addr } from '../../base/addr.js';
import type { ElfFile, ElfSymbol } from '../../elf/index.js';
import { isLinux } from '../../facts/index.js';
import { PAGE } from './scratch.js';

export interface Allocator {
  /** As people know it. */
  readonly name: string;
  /** Whose it is, for people. */
  readonly owner: string;
  readonly address: Addr;
  /** First instructions of functions that may be called wherever these are: the hart stands there, and this allocator's call comes first. */
  readonly places: readonly Addr[];
  /** Sizes to ask for, in bytes, one after the other, until there is so much. */
  readonly sizes: readonly number[];
  /** Its arguments for so many bytes. */
  readonly arguments: (size: number) => readonly [bigint, bigint];
  /** It gives single pages, which are to be mapped where trampolines can be. */
  readonly pages: boolean;
}

const rust = '__rust_alloc';
/** As rustc 1.87 and later ones call it. */
const mangled = /^_RNvCs[0-9A-Za-z]*_7___rustc12___rust_alloc$/;
/** What every allocator has to take, and no more. */
const ALIGN = 16n;
/**
 * Where Linux is in a task that may sleep and wait for memory: these ask for memory that way themselves (GFP_KERNEL), `kernel_clone` for each
 * new task. None has more than two arguments.
 */
const linuxPlaces = ['vmalloc', 'vzalloc', 'vmalloc_user', 'vmalloc_node', 'vzalloc_node', 'kernel_clone'];

/** The allocator that a program can be asked for memory by. */
export function allocatorOf(elf: ElfFile): Allocator | undefined {
  return isLinux(elf) ? linuxAllocator(elf) : rustAllocator(elf);
}

function rustAllocator(elf: ElfFile): Allocator | undefined {
  const found = elf.symbols.named(rust);
  if (found.length === 0) for (const symbol of elf.symbols) if (mangled.test(symbol.name)) found.push(symbol);
  const one = callable(found);
  return (
    one && {
      name: rust,
      owner: 'the program',
      address: one.address,
      places: [one.address],
      // Little of any heap first; a page more, since it need not begin with one.
      sizes: [256 * 2 ** 10 + PAGE, 64 * 2 ** 10 + PAGE],
      arguments: (size) => [BigInt(size), ALIGN],
      pages: false,
    }
  );
}

function linuxAllocator(elf: ElfFile): Allocator | undefined {
  const global = (name: string): ElfSymbol | undefined =>
    callable(elf.symbols.named(name)) ?? callable(elf.symbols.named(`${name}_noprof`));
  const one = global('vmalloc');
  const places = linuxPlaces.flatMap((name) => global(name)?.address ?? []);
  return (
    one && {
      name: 'vmalloc',
      owner: 'Linux',
      address: one.address,
      places,
      // One page is the table of the others, of which some places stay empty.
      sizes: [510 * PAGE, 130 * PAGE],
      arguments: (size) => [BigInt(size), 0n],
      pages: true,
    }
  );
}

/** The only function among these symbols, where it is one that other objects may call. */
function callable(symbols: readonly ElfSymbol[]): ElfSymbol | undefined {
  const [one, ...others] = symbols.filter(({ type, size }) => type === 'function' && size > 0);
  return one?.external && others.length === 0 ? one : undefined;
}
