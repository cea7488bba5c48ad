import { basename } from 'node:path';
import type { FutureSet, FutureType } from '../../async/futures/index.js';
import { type Addr, addr, hex } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import { type Die, DW_TAG } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import { isLibraryFile } from '../../text/index.js';
import type { SampledFrame } from '../../trace/index.js';
import { codeAt, type Frame, type SourceFrame, SourceFrames } from '../unwind/index.js';
import type { OtherProgram } from './other-programs.js';

/** A function of a stack, and what it is as a poll. */
interface Named {
  readonly frame: SampledFrame;
  /** Undefined if it polls no Future. */
  readonly poll: SampledFrame | undefined;
}

/** A program whose functions are sampled. */
interface SampledProgram extends OtherProgram {
  /** For a profile by what is awaited. */
  readonly futures?: FutureSet | undefined;
}

/** Frames by their names: samples of one function are one, wherever in it the hart was. */
export class SampledFrames {
  readonly #main: SampledProgram;
  readonly #sources: SourceFrames;
  readonly #programs: ReadonlyMap<ElfFile, SampledProgram>;
  readonly #known = new Map<string, SampledFrame>();
  /** By the address of their code: a program is sampled at the same places again and again. */
  readonly #at = new Map<ElfFile, Map<bigint, readonly Named[]>>();

  /** The first is the program, others run on the same machine. */
  constructor(programs: readonly SampledProgram[]) {
    const [main] = programs;
    if (main === undefined) throw new Error('no program');
    this.#main = main;
    this.#sources = new SourceFrames(main.elf, main.debug);
    this.#programs = new Map(programs.map((each) => [each.elf, each]));
  }

  /** All functions of a stack, the innermost first, with those that are inlined. */
  of(frames: readonly Frame[]): SampledFrame[] {
    return frames.flatMap((frame) => this.#functionsAt(frame).map((named) => named.frame));
  }

  /** Whether all have names already: to find one may take as long as many samples. */
  areNamed(frames: readonly Frame[]): boolean {
    return frames.every(
      (frame) => frame.image === undefined || this.#at.get(frame.image.elf)?.has(codeAt(frame)) === true,
    );
  }

  /** A frame that is no function: `[idle]`. */
  mark(text: string): SampledFrame {
    return this.#frame(text, undefined);
  }

  /**
   * The same as an await tree: from the outermost poll on, with nothing of the executor around it, and nothing between
   * the polls. Undefined where no poll is on the stack.
   */
  awaited(frames: readonly Frame[]): SampledFrame[] | undefined {
    const functions = frames.flatMap((frame) => this.#functionsAt(frame));
    const innermost = functions.findIndex(({ poll }) => poll !== undefined);
    if (innermost < 0) return undefined;
    const inside = functions.slice(0, innermost).map(({ frame }) => frame);
    return [...inside, ...functions.flatMap(({ poll }) => poll ?? [])];
  }

  #functionsAt(frame: Frame): readonly Named[] {
    const { image } = frame;
    const code = codeAt(frame);
    const at = madeOnce(this.#at, image?.elf ?? this.#main.elf, () => new Map<bigint, readonly Named[]>());
    const known = at.get(code);
    if (known !== undefined) return known;
    const program = this.#programs.get(image?.elf ?? this.#main.elf);
    const made = this.#sources.functionsOf(frame).map(({ function: name, file, die }) => {
      const future = die && program && this.#futureOf(die, code, program);
      return {
        frame: this.#frame(this.#named(name, frame), name === undefined ? undefined : file),
        poll: future && this.#frame(`poll ${this.#inProgram(future.future, program)}`, future.file),
      };
    });
    // A library may be loaded there later.
    if (image !== undefined) at.set(code, made);
    return made;
  }

  /** The Future whose poll function this is, or an inlined copy of it. */
  #futureOf(die: Die, code: Addr, program: SampledProgram): FutureType | undefined {
    const { futures, debug } = program;
    if (futures === undefined) return undefined;
    if (die.tag === DW_TAG.inlined_subroutine) return futures.ofCopy(die);
    const around = debug?.functionAt(code);
    return around && futures.byPollAddress(around.low);
  }

  #named(name: string | undefined, frame: Frame): string {
    if (name === undefined) return unnamed(frame, this.#main.elf);
    return this.#inProgram(name, this.#programs.get(frame.image?.elf ?? this.#main.elf));
  }

  #inProgram(name: string, program: SampledProgram | undefined): string {
    return program === undefined || program === this.#main ? name : nameIn(program.elf, name);
  }

  #frame(name: string, file: string | undefined): SampledFrame {
    const key = `${name}\n${file}`;
    return madeOnce(this.#known, key, () => ({ name, instance: name, address: undefined, file, line: undefined }));
  }
}

/** By its page, so that code without symbols is a few frames and not thousands. */
function unnamed(frame: Frame, main: ElfFile): string {
  const { image } = frame;
  const page = hex(addr(codeAt(frame) & ~0xfffn));
  return image === undefined || image.elf === main ? `[unknown ${page}]` : `[${basename(image.elf.path)} ${page}]`;
}

/** Where a stack stands, in as few words as say it. */
export interface CodePlace {
  /** What the program's own code has called; without any of that on the stack, the innermost function. */
  readonly inside: string | undefined;
  /** The innermost function of the program's own files. */
  readonly own: SourceFrame | undefined;
}

/** It says only that some system call is made. */
const ANY_CALL = 'syscall';

export function codePlace(frames: readonly Frame[], sources: SourceFrames): CodePlace {
  let innermost: string | undefined;
  let last: string | undefined;
  for (const frame of frames) {
    for (const source of sources.of(frame)) {
      const { function: name, file } = source;
      if (!frame.image?.isLibrary && file !== undefined && !isLibraryFile(file)) return { inside: last, own: source };
      if (name === undefined) continue;
      last = publicName(name);
      if (innermost === undefined || innermost === ANY_CALL) innermost = last;
    }
  }
  return { inside: innermost, own: undefined };
}

/** Private modules of std, by the public one that has their items, from Rust 1.65 on. */
const privateModules: readonly (readonly [string, string])[] = [
  ['sync', '(?:poison::)?(?:mutex|rwlock|condvar|once)|barrier|lazy_lock|once_lock|reentrant_lock|remutex'],
  ['sync::nonpoison', 'mutex|rwlock|condvar'],
  ['thread', 'local|builder|functions|id|join_handle|scoped|thread'],
  ['io', 'buffered::(?:bufreader|bufwriter|linewriter)|buffered|cursor|error|pipe|stdio|util'],
  ['net', 'addr|ip|ip_addr|socket_addr|tcp|udp'],
  ['os::unix::net', 'addr|ancillary|datagram|listener|stream'],
];
const inPrivate = privateModules.map(([known, inside]) => new RegExp(`^(<?std::${known}::)(?:${inside})::`));

/** `std::sync::poison::mutex::Mutex::lock` is known as `std::sync::Mutex::lock`. */
function publicName(name: string): string {
  const plain = name.replace(/^<([^<> ]*)>(?=::)/, '$1');
  return inPrivate.reduce((path, inside) => path.replace(inside, '$1'), plain);
}

/** What a program is called: its file without `.elf`. */
export function programName({ path }: Pick<ElfFile, 'path'>): string {
  return basename(path).replace(/\.elf$/, '');
}

/**
 * A function of one program among several: `shell::main`. Functions of the program's own crate bear its name already;
 * those of libraries, and of C, may be in each of them.
 */
export function nameIn(elf: Pick<ElfFile, 'path'>, name: string): string {
  const program = programName(elf);
  const crate = `${program.replaceAll('-', '_')}::`;
  return name.startsWith(crate) || name.startsWith(`<${crate}`) ? name : `${program}::${name}`;
}
