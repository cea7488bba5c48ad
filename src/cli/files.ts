// All files that a command reads or writes, compared with each other before any is opened for writing: by device and
// inode, so that links and /dev/fd count, and by path where a file is not there yet.
import { type BigIntStats, existsSync, fstatSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { RsptraceError } from '../base/errors.js';
import { parseRemote } from '../rsp/index.js';
import { isThere } from './open-output.js';
import { usage } from './options/option.js';

/** Options that name a file to write. What is there is lost. */
const written = ['output', 'record-wire', 'console', 'svg', 'junit', 'markdown'] as const;
/** Options and arguments that name a file to read, and what an error calls it. */
const read = {
  ...{ elf: 'the ELF', trace: 'the trace', other: 'the other trace' },
  ...{ 'debug-file': '--debug-file', core: '--core' },
};

/** The parts of a command line that name files. */
export type FileArguments = {
  readonly [name in (typeof written)[number] | keyof typeof read | 'remote' | 'budget']?: string | undefined;
} & {
  readonly plugin?: readonly string[] | undefined;
  readonly others?: readonly string[] | undefined;
  /** Of `--elf`. */
  readonly programs?: readonly string[] | undefined;
  /** The budget is written. */
  readonly update?: boolean | undefined;
  /** What is there already may be overwritten. */
  readonly force?: boolean | undefined;
  /** Every recording has it: what is not understood yet lies beside its trace. */
  readonly 'keep-records'?: boolean | undefined;
  /** Nothing is written. */
  readonly 'dry-run'?: boolean | undefined;
  /** Of the QEMU that is started. */
  readonly command?: readonly string[] | undefined;
};

/** The trace file if no -o names one. The old trace there is kept. */
export const defaultTrace = { path: 'rsptrace.pftrace', keepAs: '.old' } as const;

interface NamedFile {
  /** As a message names it: `-o out.json`, `the ELF k.elf`. */
  readonly name: string;
  /** Identifies the file, whatever its name; undefined for what a write cannot destroy: devices. */
  readonly identity: string | undefined;
}

interface Output extends NamedFile {
  /** The option that names it; undefined for a standard stream. */
  readonly option: string | undefined;
  /** What is lost if something is there already; undefined where that is kept, or is to be replaced. */
  readonly losesAt?: string;
}

const MOST_LINKS = 40;

/**
 * Throws `OUTPUT_IS_INPUT` if a write would destroy what is read, `OUTPUT_TWICE` if two outputs would destroy each
 * other. `found`: other inputs, such as a debug file.
 */
export function checkFiles(args: FileArguments, found: readonly string[] = []): void {
  const outputs = outputsOf(args);
  const inputs = inputsOf(args, found);
  for (const output of outputs) {
    const input = inputs.find((one) => isSame(one, output));
    if (input) throw isInput(output, input);
  }
  const all = [...outputs, ...streams(args)];
  for (const [index, output] of outputs.entries()) {
    const other = all.slice(index + 1).find((one) => isSame(one, output));
    if (other) throw isTwice(output, other);
  }
  for (const stream of streams(args)) {
    const input = stream.name === 'standard output' ? inputs.find((one) => isSame(one, stream)) : undefined;
    if (input) throw isInput(stream, input);
  }
}

/**
 * Throws `OUTPUT_EXISTS` for a file to write that is there already, unless `--force` is given. An empty one, a device
 * and a pipe hold nothing that could be lost.
 */
export function refuseExisting(args: FileArguments): void {
  if (args.force || args['dry-run']) return;
  const lost = outputsOf(args).find(({ losesAt }) => losesAt !== undefined && isThere(losesAt));
  if (lost === undefined) return;
  throw new RsptraceError('OUTPUT_EXISTS', `${lost.losesAt} is there already`, {
    hint: `name another file with ${lost.option}, or have it overwritten with --force`,
  });
}

function outputsOf(args: FileArguments): Output[] {
  const { path: usual, keepAs } = defaultTrace;
  const kept = `${usual}${keepAs}`;
  const all = written.flatMap((name): Output[] => {
    const path = args[name];
    if (path === undefined || path === '') return [];
    const option = name === 'output' ? '-o' : `--${name}`;
    const output = { option, name: `${option} ${path}`, identity: identityOf(path) };
    if (name !== 'output') return [{ ...output, losesAt: path }];
    const beside = `${path}.records`;
    const records = { option, name: `${beside}, its records`, identity: identityOf(beside) };
    const own = args['keep-records'] === undefined ? [] : [records];
    if (path !== usual) return [{ ...output, losesAt: path }, ...own];
    return [output, ...own, { option, name: `${kept}, the trace before`, identity: identityOf(kept) }];
  });
  // To write it anew is what --update is for.
  return args.update
    ? [...all, ...named('--budget', args.budget).map((file) => ({ option: '--budget', ...file }))]
    : all;
}

function inputsOf(args: FileArguments, found: readonly string[]): NamedFile[] {
  return [
    ...Object.entries(read).flatMap(([name, what]) => named(what, args[name as keyof typeof read])),
    ...found.flatMap((path) => named('the debug file', path)),
    ...named('--remote', remoteFile(args.remote)),
    ...(args.update ? [] : named('--budget', args.budget)),
    ...(args.others ?? []).flatMap((path) => named('the trace', path)),
    ...(args.programs ?? []).flatMap((words) => named('--elf', placedProgram(words).path)),
    ...(args.plugin ?? []).flatMap((path) => named('--plugin', path)),
    ...(args.command ?? []).flatMap(filesInWord).flatMap((path) => named("QEMU's file", path)),
  ];
}

function named(what: string, path: string | undefined): NamedFile[] {
  return path === undefined ? [] : [{ name: `${what} ${path}`, identity: identityOf(path) }];
}

function remoteFile(remote: string | undefined): string | undefined {
  if (remote === undefined) return undefined;
  try {
    const address = parseRemote(remote);
    return address.kind === 'tcp' ? undefined : address.path;
  } catch {
    // It names no file, and the command will report the error.
    return undefined;
  }
}

/**
 * What a word of QEMU's command line may name: `disk.img`, `file=disk.img,if=virtio`, `file:out`. Commas in names are
 * doubled.
 */
function filesInWord(word: string): string[] {
  const parts = word.split(/(?<!,),(?!,)/).map((part) => part.replaceAll(',,', ','));
  return [word, ...parts.flatMap((part) => [part, part.replace(/^[^=]*=/, ''), part.replace(/^[^:]*:/, '')])].filter(
    (path) => path !== '' && !path.includes('\0'),
  );
}

/** Standard streams that lead into a file. */
function streams(args: FileArguments): Output[] {
  const one = (fd: number, name: string): Output[] => {
    const identity = streamIdentity(fd);
    return identity === undefined ? [] : [{ option: undefined, name, identity }];
  };
  // With --svg=FILE nothing else is written to stdout, so --svg=/dev/stdout sends it there.
  return [...(args.svg ? [] : one(1, 'standard output')), ...one(2, 'standard error')];
}

function streamIdentity(fd: number): string | undefined {
  try {
    const stat = fstatSync(fd, { bigint: true });
    return stat.isFile() ? identity(stat) : undefined;
  } catch {
    // It is closed.
    return undefined;
  }
}

function isSame(one: NamedFile, other: NamedFile): boolean {
  return one.identity !== undefined && one.identity === other.identity;
}

function identityOf(path: string): string | undefined {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stat ? identity(stat) : finalPath(path);
  } catch {
    // A folder on the way cannot be searched, or is no folder: opening will report the error.
    return finalPath(path);
  }
}

function identity(stat: BigIntStats): string | undefined {
  return stat.isCharacterDevice() ? undefined : `${stat.dev}:${stat.ino}`;
}

/** Where a missing file would be created: links are followed, also one whose target is missing. */
function finalPath(path: string): string {
  let at = resolve(path);
  for (let hops = 0; hops < MOST_LINKS; hops++) {
    try {
      at = join(realpathSync(dirname(at)), basename(at));
      if (!lstatSync(at).isSymbolicLink()) return at;
      at = resolve(dirname(at), readlinkSync(at));
    } catch {
      return at;
    }
  }
  return at;
}

function isInput({ option, name }: Output, input: NamedFile): RsptraceError {
  return new RsptraceError('OUTPUT_IS_INPUT', `${name} is also ${input.name}: writing it would destroy it`, {
    hint: option === undefined ? 'send it into another file' : `name another file with ${option}`,
  });
}

function isTwice({ option, name }: Output, other: Output): RsptraceError {
  return new RsptraceError('OUTPUT_TWICE', `${name} is also ${other.name}: each would overwrite the other`, {
    hint: `name another file with ${option}`,
  });
}

// A further program as --elf names it, with where a kernel loads one that is position-independent.

interface PlacedProgram {
  readonly path: string;
  /** How far its addresses are moved; 0 where nothing is said. */
  readonly bias: bigint;
}

/**
 * `shell.elf`, or `shell.elf@0x10000`. A file that is called so is itself.
 * @throws RsptraceError `USAGE`
 */
export function placedProgram(words: string): PlacedProgram {
  const [, path = '', place = ''] = /^(.+)@(.*)$/.exec(words) ?? [];
  if (path === '' || existsSync(words)) return { path: words, bias: 0n };
  if (!/^0x[0-9a-f]{1,16}$/i.test(place)) {
    if (!existsSync(path)) return { path: words, bias: 0n };
    throw usage(`--elf ${words}: '${place}' is no address`, `write where it is loaded in hexadecimal: ${path}@0x10000`);
  }
  const bias = BigInt(place);
  if (bias % 0x1000n === 0n) return { path, bias };
  throw usage(
    `--elf ${words}: a program is loaded at a whole page, and ${place} is in the middle of one`,
    'give a multiple of 0x1000',
  );
}
