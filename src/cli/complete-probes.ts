import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { findFutures } from '../async/futures/index.js';
import { DebugInfo, demangle, stripGenerics } from '../dwarf/index.js';
import { ElfFile } from '../elf/index.js';
import { kinds } from '../probes/index.js';
import { settingsTables } from './command-line.js';
import { isElf } from './runner.js';
import { settingsFiles } from './settings/find.js';
import { loadSettings } from './settings/load.js';
import { placed } from './settings/words.js';

/** More names than a person would read end at the next `::`. */
const MOST_WHOLE = 100;

/**
 * The probes that begin with a word, of the program that a command line names: `poll:net::rx`, `fn:rx`. A name may be
 * left out up to any `::`, as in a probe. None where no program is named, or it cannot be read.
 */
export async function completedProbes(word: string, line: readonly string[]): Promise<string[]> {
  const [, excludes = '', name = '', of, begun] = /^(!?)(\w*)(\([^)]*\))?(?::(.*))?$/s.exec(word) ?? [];
  if (begun === undefined)
    return kinds.flatMap((kind) => (kind.name.startsWith(name) ? `${excludes}${kind.name}:` : []));
  const path = programIn(line);
  if (path === undefined) return [];
  const elf = await ElfFile.open(path);
  const names = name === 'poll' ? futuresOf(elf) : functionKinds.has(name) ? functionsOf(elf) : [];
  return fitting(names, begun).map((one) => `${excludes}${name}${of ?? ''}:${one}`);
}

const functionKinds: ReadonlySet<string> = new Set(['fn', 'count', 'hist', 'sum', 'avg']);

function futuresOf(elf: ElfFile): string[] {
  return findFutures(DebugInfo.load(elf)).all.map(({ future }) => future);
}

function functionsOf(elf: ElfFile): string[] {
  const functions = [...elf.symbols].filter(({ type, size }) => type === 'function' && size > 0);
  return functions.map(({ name }) => stripGenerics(demangle(name, elf.budget)));
}

/** The first file of a command line that is an ELF, other than QEMU; the program of its process, or of the settings. */
function programIn(line: readonly string[]): string | undefined {
  const words = line.slice(1).map((word) => word.replace(/^--\w[\w-]*=|^['"]|['"]$/g, ''));
  const found = words.find((word) => !basename(word).startsWith('qemu-') && isElf(word));
  const pid = line[1] === 'attach' ? words.find((word) => /^\d+$/.test(word)) : undefined;
  return found ?? (pid === undefined ? programOfSettings() : executable(pid));
}

function programOfSettings(): string | undefined {
  const found = loadSettings(
    settingsFiles(process.cwd(), () => {}),
    settingsTables(),
    'run',
  );
  const { program } = found?.values ?? {};
  return found && typeof program === 'string' ? placed(program, found.path) : undefined;
}

function executable(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined;
  }
}

/** Names, or their ends from some `::` on, that begin with a text, sorted. */
function fitting(names: Iterable<string>, begun: string): string[] {
  const found = new Set<string>();
  for (const name of names) {
    const fits = name.startsWith(begun) ? name : endOf(name, begun);
    if (fits !== undefined) found.add(fits);
  }
  const cut = (name: string): string => /^.*?::/s.exec(name.slice(begun.length))?.[0] ?? name.slice(begun.length);
  const all = found.size > MOST_WHOLE ? new Set([...found].map((name) => begun + cut(name))) : found;
  return [...all].sort();
}

/** Not within angle brackets, whose paths are other types'. */
function endOf(name: string, begun: string): string | undefined {
  if (begun === '' || name.includes('<')) return undefined;
  const at = name.indexOf(`::${begun}`);
  return at < 0 ? undefined : name.slice(at + 2);
}
