import type { FrameModel } from '../../arch/index.js';
import { madeOnce } from '../../base/made-once.js';
import { CallFrames, DebugInfo } from '../../dwarf/index.js';
import type { CodeAddress, ElfFile } from '../../elf/index.js';
import { CodeMap, type FunctionCode } from './code-map.js';
import type { Picked, Place, Unwinder, UnwinderName } from './frame.js';
import { CodeFrames, cfiUnwinder, framePointerUnwinder, pick, prologueUnwinder } from './unwinders.js';

/** Functions between the entry and the first call: a few labels of assembly. */
const mostJoined = 8;
const images = new WeakMap<ElfFile | DebugInfo, CodeImage>();
const libraries = new WeakMap<ElfFile, CodeImage>();

/** One ELF in the target's memory, and how frames of its code are unwound. It is read only on request. */
export class CodeImage {
  readonly elf: ElfFile;
  readonly isLibrary: boolean;
  readonly #model: FrameModel;
  #debug: DebugInfo | undefined;
  #mayHaveDebug: boolean;
  #map: CodeMap | undefined;
  #frames: CodeFrames | undefined;
  #callFrames: CallFrames | undefined;
  #joined: ReadonlySet<CodeAddress> | undefined;
  #unwinders: Readonly<Record<UnwinderName, Unwinder>> | undefined;

  private constructor(elf: ElfFile, model: FrameModel, isLibrary: boolean, debug?: DebugInfo) {
    this.elf = elf;
    this.isLibrary = isLibrary;
    this.#model = model;
    this.#debug = debug;
    this.#mayHaveDebug = isLibrary;
  }

  /**
   * Read once for all stacks of a file. Throws `ELF_DAMAGED` if its call frame information cannot be unpacked: before a
   * target is used.
   */
  static program(elf: ElfFile, model: FrameModel, debug: DebugInfo | undefined): CodeImage {
    return madeOnce(images, debug ?? elf, () => {
      const image = new CodeImage(elf, model, false, debug);
      image.#callFrames = CallFrames.load(elf);
      return image;
    });
  }

  static library(elf: ElfFile, model: FrameModel): CodeImage {
    return madeOnce(libraries, elf, () => new CodeImage(elf, model, true));
  }

  /** A library's is read on request. */
  get debug(): DebugInfo | undefined {
    if (this.#mayHaveDebug) {
      this.#mayHaveDebug = false;
      if (this.elf.has('.debug_info')) this.#debug = DebugInfo.load(this.elf, { linesSuffice: true });
    }
    return this.#debug;
  }

  /** The address's number in the image's tables. */
  toCode(address: bigint): CodeAddress {
    return this.elf.codes.toCode(address);
  }

  isCode(code: CodeAddress): boolean {
    return this.#code.isCode(code);
  }

  functionAt(code: CodeAddress): FunctionCode | undefined {
    return this.#code.functionAt(code);
  }

  /** True in the function where the program begins. */
  isEntry(code: CodeAddress): boolean {
    const own = this.functionAt(code);
    return own !== undefined && own.low === this.functionAt(this.toCode(this.elf.entry))?.low;
  }

  /** True where the program begins, and in functions that it jumps to from there. */
  isJoinedToEntry(code: CodeAddress): boolean {
    this.#joined ??= new Set(this.#codeFrames.joinedTo(this.toCode(this.elf.entry), mostJoined));
    const own = this.functionAt(code);
    return own !== undefined && this.#joined.has(own.low);
  }

  /** The result of the wanted unwinder for a place; `auto` is the best one. Throws `ELF_DAMAGED`. */
  find(place: Place, wanted: UnwinderName | 'auto'): Picked | undefined {
    this.#callFrames ??= CallFrames.load(this.elf);
    this.#unwinders ??= {
      cfi: cfiUnwinder(this.#callFrames),
      fp: framePointerUnwinder(this.#model, this.#codeFrames),
      prologue: prologueUnwinder(this.#codeFrames),
    };
    if (wanted === 'auto') return pick(place, this.#unwinders, this.#codeFrames, this.#model);
    const found = this.#unwinders[wanted](place);
    return found && { name: wanted, found };
  }

  get #code(): CodeMap {
    this.#map ??= CodeMap.of(this.elf, this.debug);
    return this.#map;
  }

  get #codeFrames(): CodeFrames {
    this.#frames ??= new CodeFrames(this.#model, this.#code, this.elf.codes);
    return this.#frames;
  }
}

/** The program and its libraries, by address. */
export class CodeImages {
  readonly #all: readonly CodeImage[];
  #last: CodeImage;

  constructor(program: CodeImage, libraries: readonly CodeImage[]) {
    this.#all = [program, ...libraries];
    this.#last = program;
  }

  /** The image with code at an address less `back` bytes. */
  at(address: bigint, back: 0 | 1): CodeImage | undefined {
    if (this.#last.isCode(this.#last.toCode(address) - back)) return this.#last;
    const found = this.#all.find((image) => image.isCode(image.toCode(address) - back));
    if (found !== undefined) this.#last = found;
    return found;
  }
}
