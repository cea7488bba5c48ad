import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { demangle } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { compileGlob } from '../probes/index.js';

/** Where Rust's panics lead to: the panic handler, and what calls it if that was inlined. */
const panicFunctions = ['rust_begin_unwind', 'core::panicking::panic_fmt'];

/** The address of the function that a program's panics go through, as the ELF counts; undefined if it has none. */
export function panicFunction(elf: ElfFile): Addr | undefined {
  for (const name of panicFunctions) {
    const found = symbolNamed(elf, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * The address of a function by its symbol, mangled or not, as the ELF counts.
 * @throws RsptraceError `UNTIL_NO_FUNCTION`
 */
export function functionNamed(elf: ElfFile, name: string): Addr {
  const found = symbolNamed(elf, name);
  if (found !== undefined) return found;
  throw new RsptraceError('UNTIL_NO_FUNCTION', `${elf.path} has no function ${name}`, {
    hint: 'give its symbol, or its path with * for what you do not know',
  });
}

function symbolNamed(elf: ElfFile, name: string): Addr | undefined {
  const matches = compileGlob(name);
  const exact = elf.symbols.named(name).find(({ type }) => type !== 'object');
  const found =
    exact ??
    [...elf.symbols].find((symbol) => symbol.type === 'function' && matches(demangle(symbol.name, elf.budget)));
  return found?.address;
}
