/*
 * The program's functions that allocate memory, if their arguments are known, and the places where a call of them is
 * safe:
 *
 *   every Rust program   __rust_alloc(size: usize, align: usize) -> *mut u8   library/alloc/src/alloc.rs
 *   Linux                void *vmalloc(unsigned long size)                    include/linux/vmalloc.h
 *                        (vmalloc_noprof from 6.10 on)
 *
 * Both return null if there is no memory. Only functions that other objects may call are used, because the compiler
 * has left their arguments unchanged. A function that was made local (link-time optimisation) may have lost them.
 */

import type { Addr } from '../base/addr.js';
import type { ElfFile, ElfSymbol } from '../elf/index.js';
import { isLinux } from '../target/index.js';
import { PAGE } from './scratch.js';
import { pagesFor } from './second-mapping.js';

export interface Allocator {
  /** Its usual name, for the user. */
  readonly name: string;
  /** Its owner, for the user. */
  readonly owner: string;
  readonly address: Addr;
  /**
   * First instructions of functions that call an allocator: when a hart is there, a call of this allocator is safe,
   * and ours is inserted first.
   */
  readonly places: readonly Addr[];
  /** Sizes to ask for, in bytes, tried in turn until one is allocated. `codeSize`: bytes of code that there may be. */
  readonly sizes: (codeSize: number) => readonly number[];
  /** Its arguments for this number of bytes. */
  readonly arguments: (size: number) => readonly [bigint, bigint];
  /** It allocates single pages, which must be mapped near the program's text. */
  readonly pages: boolean;
}

const rust = '__rust_alloc';
/** The name that rustc 1.87 and later give it. */
const mangled = /^_RNvCs[0-9A-Za-z]*_7___rustc12___rust_alloc$/;
/** The alignment that every allocator supports. */
const ALIGN = 16n;
/**
 * Places where Linux is in a task that may sleep and wait for memory, because these functions allocate that way
 * themselves (GFP_KERNEL). `kernel_clone` does so for each new task. None has more than two arguments.
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
      // Small sizes, so that any heap has them; plus one page, because the memory need not begin at a page.
      sizes: () => [256 * 2 ** 10 + PAGE, 64 * 2 ** 10 + PAGE],
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
      // Some pages are the page tables of the others.
      sizes: (codeSize) => [...new Set([pagesFor(codeSize) * PAGE, 510 * PAGE, 130 * PAGE])],
      arguments: (size) => [BigInt(size), 0n],
      pages: true,
    }
  );
}

/** The only function among these symbols, if other objects may call it. */
function callable(symbols: readonly ElfSymbol[]): ElfSymbol | undefined {
  const [one, ...others] = symbols.filter(({ type, size }) => type === 'function' && size > 0);
  return one?.external && others.length === 0 ? one : undefined;
}
