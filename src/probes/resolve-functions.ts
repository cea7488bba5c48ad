import type { Architecture, FloatPassing } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  debugInfoMissing,
  linkageNameOf,
  nameOf,
  typeOf,
  unpackedChildren,
} from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { isLinuxProgram } from '../target/index.js';
import type { FunctionRef } from '../trace/index.js';
import { type Shape, Shapes } from '../values/index.js';
import {
  type Calling,
  type Convention,
  type Described,
  describedPlace,
  hiddenRegisters,
  isUntupled,
  placeArguments,
  placeResult,
  rustConvention,
  type ValuePlace,
} from './argument-places.js';
import { type BtfSignature, btfSignatures } from './btf-signature.js';
import { ChangedSignatures, changesOf, isClone, mostWords } from './changed-signatures.js';
import { type Conditions, compareFor, type FunctionComparison } from './expressions/comparison.js';
import { ProgramExpressions } from './expressions/program.js';
import { functionsMatching, type NamedFunction, namedFunctions } from './function-names.js';
import { nearest } from './glob.js';
import { inlinedFunctions } from './inlined-functions.js';
import { type ProbeSpec, whiteList } from './kinds/names.js';
import { leftToNames, NoTrace } from './notrace.js';

/** A parameter; or, for a function without debug info, an argument register. */
export interface FunctionArgument {
  readonly name: string;
  /** As DWARF spells it; undefined without debug info. */
  readonly type: string | undefined;
  /** The type of its bytes; undefined without debug info: a word. */
  readonly shape: Shape | undefined;
  readonly where: ValuePlace;
}

interface Signature {
  readonly arguments: readonly FunctionArgument[];
  /** Undefined for `()`, `!`, and without debug info. */
  readonly result: { readonly type: string; readonly shape: Shape; readonly where: ValuePlace } | undefined;
  /** An argument is, or may be, passed on the stack: its return address must stay unchanged. */
  readonly stackArguments: boolean;
  /** What compiled it. */
  readonly producer: 'rustc' | 'clang' | 'gcc' | undefined;
}

/** One function to probe, and everything that a hit at its entry or return needs to know. */
export interface FunctionProbe extends Signature {
  readonly address: Addr;
  readonly ref: FunctionRef;
  /** Bytes from the entry; 0 if the size is not known. */
  readonly size: number;
  /** Other functions that the linker folded into this address. */
  readonly aliases: readonly string[];
  /** The user insists, although this is why it is refused: its entries alone are traced. */
  readonly insisted?: string;
  /** Which calls are traced; undefined: all. */
  readonly when?: Conditions;
  /** Why nothing is known of its code, in words for the user. */
  readonly unread?: string;
}

/** A function that matches and still is not probed. */
export interface ExcludedFunction {
  readonly name: string;
  readonly address: Addr;
  readonly reason: string;
}

export interface FunctionProbes {
  /** In order of address. */
  readonly probes: readonly FunctionProbe[];
  readonly excluded: readonly ExcludedFunction[];
  /** Probes that match no function, while others do. */
  readonly unmatched: readonly string[];
}

/** How many argument registers are shown for a function without debug info. */
const rawArguments = 4;

/**
 * What rustc itself makes between `alloc` and an allocator, without debug info. It takes four numbers at most, in
 * registers.
 */
const allocatorShim =
  /(^|_7___rustc\d+_)__r(ust|dl|g)_(alloc|dealloc|realloc|alloc_zeroed|alloc_error_handler|no_alloc_shim_is_unstable(_v2)?)$/;

/**
 * Resolves function probes to addresses. Without debug info the symbols are used. The architecture must be prepared.
 *
 * @throws RsptraceError `PROBE_NO_MATCH`, with the nearest names; `PROBE_INLINED` if every match was inlined;
 *   `PROBE_UNSAFE` if no match may be probed;
 *   `PROBE_CONDITION` if none has the argument of its condition
 */
export function resolveFunctions(
  elf: ElfFile,
  debug: DebugInfo | undefined,
  arch: Architecture,
  specs: readonly ProbeSpec[],
): FunctionProbes {
  const list = whiteList(specs);
  const includes = specs.filter((spec) => !spec.excludes);
  const { places, matched } = functionsMatching(namedFunctions(elf, debug, arch), list, includes);
  const notrace = new NoTrace(elf, arch);
  const excluded: ExcludedFunction[] = [];
  /** Matched only by probes whose conditions cannot apply to them. */
  const unconditional: ExcludedFunction[] = [];
  const probes: FunctionProbe[] = [];
  const describer = new Describer(
    elf,
    arch,
    debug,
    unreadCode([...places.values()].map(([first]) => first?.size ?? 0)),
  );
  const program = debug && new ProgramExpressions(debug);
  for (const names of places.values()) {
    const functions = names.filter((one) => one.isFunction);
    const [first] = functions.length > 0 ? functions : names;
    if (!first) continue;
    const { address, name, size, symbol } = first;
    const reason =
      functions.length === 0
        ? 'a label in assembly: nothing says that it is a function'
        : (notrace.reason(symbol, address, size) ??
          // A probe may ask for this very name.
          (includes.some(({ glob }) => glob === name || glob === symbol) ? undefined : leftToNames(symbol, size)));
    const isWanted = includes.some(({ insists, matches }) => insists && names.some((one) => one.names.some(matches)));
    if (reason !== undefined && !(isWanted && notrace.maySeeEntry(address))) {
      excluded.push({ name, address, reason });
      continue;
    }
    const described = describer.probe(first, functions.slice(1), probes.length + 1);
    const probe = reason === undefined ? described : entriesOf(elf, described, reason);
    const conditions = conditionsOf(
      probe,
      includes.filter((spec) => names.some((one) => one.names.some(spec.matches))),
      program,
    );
    if (typeof conditions === 'string') unconditional.push({ name, address, reason: conditions });
    else probes.push(conditions ? { ...probe, when: conditions } : probe);
  }
  const [other] = unconditional;
  if (probes.length === 0 && other) {
    const message = `no function that matches has what the condition looks at: ${other.name}`;
    throw new RsptraceError('PROBE_CONDITION', message, { hint: other.reason });
  }
  excluded.push(...unconditional);
  if (probes.length === 0) throw nothingToProbe(elf, debug, includes, list.allows, excluded);
  probes.sort((a, b) => (a.address < b.address ? -1 : 1));
  const unmatched = includes.filter((spec) => !matched.has(spec)).map(({ text }) => text);
  return { probes, excluded, unmatched };
}

/**
 * Following code takes some two seconds a MiB. Of more than this the largest functions are not read, which are few and
 * have most of it.
 */
const mostCode = 6 << 20;

/** Functions of more than so many bytes; in words for the user. */
interface Unread {
  readonly above: number;
  why(size: number): string | undefined;
}

/** Undefined if all code is read. */
function unreadCode(sizes: readonly number[]): Unread | undefined {
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  if (whole <= mostCode) return undefined;
  let above = 0;
  let left = mostCode;
  for (const size of sizes.toSorted((a, b) => a - b)) {
    left -= size;
    if (left < 0) break;
    above = size;
  }
  const why = `its code is not read, because the ${sizes.length} functions that are asked for have ${Math.round(whole / 1e6)} MB: only those up to ${above} bytes are. Ask for fewer`;
  return { above, why: (size) => (size > above ? why : undefined) };
}

/** Larger code than this is not looked at behind a label. */
const mostBehind = 4096;

/**
 * What is refused for this reason, by its entries alone: nobody knows its arguments, its result, and how it returns.
 */
function entriesOf(elf: ElfFile, probe: FunctionProbe, insisted: string): FunctionProbe {
  const next = elf.symbols.above(probe.address);
  const behind = next === undefined ? mostBehind : Math.min(mostBehind, Number(next.address - probe.address));
  const size = probe.size > 0 ? probe.size : behind;
  return { ...probe, size, arguments: [], result: undefined, producer: undefined, insisted };
}

/**
 * The condition for tracing a function, by the probes that match it; undefined: always. Words for the user if no
 * probe's condition applies.
 */
function conditionsOf(
  probe: FunctionProbe,
  specs: readonly ProbeSpec[],
  program: ProgramExpressions | undefined,
): Conditions | string | undefined {
  if (specs.some(({ when }) => when.length === 0)) return undefined;
  const conditions: FunctionComparison[][] = [];
  let refused = '';
  for (const all of specs.flatMap(({ when }) => when)) {
    try {
      conditions.push(all.map((comparison) => compareFor(comparison, probe.arguments, program)));
    } catch (error) {
      refused = reasonOf(error);
    }
  }
  return conditions.length > 0 ? conditions : refused;
}

/** Why a function has no such expression: the error's words and way out. Any other error is thrown on. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof RsptraceError) || !error.code.startsWith('EXPRESSION_')) throw error;
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}

/** Turns functions into probes: what their arguments are, and where. */
export class Describer {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  /** No kernel. */
  readonly #isProgram: boolean;
  readonly #floats: FloatPassing | undefined;
  readonly #debug: DebugInfo | undefined;
  readonly #shapes: Shapes | undefined;
  /** Asked if DWARF does not say. */
  readonly #btf: ((symbol: string) => BtfSignature | undefined) | undefined;
  readonly #signatures: ChangedSignatures;
  readonly #unread: Unread | undefined;

  /** @param unread which functions' code is not followed */
  constructor(elf: ElfFile, arch: Architecture, debug: DebugInfo | undefined, unread?: Unread) {
    this.#elf = elf;
    this.#arch = arch;
    this.#isProgram = isLinuxProgram(elf);
    this.#floats = arch.floats?.({ flags: elf.flags, isProcess: this.#isProgram });
    this.#debug = debug;
    this.#btf = btfSignatures(elf, arch);
    this.#shapes = debug && new Shapes(debug);
    this.#signatures = new ChangedSignatures(
      { elf, arch, debug },
      (address) => this.inRegisters(address),
      unread?.above,
    );
    this.#unread = unread;
  }

  probe(fn: NamedFunction, folded: readonly NamedFunction[], key: number): FunctionProbe {
    const { address, size, name, instance, die } = fn;
    const declared = die && this.#attempt(die, (debug) => debug.declarationOf(die));
    const ref = { key, name, instance, address, file: declared?.file, line: declared?.line };
    const aliases = [...new Set(folded.map((other) => other.name))].filter((other) => other !== name);
    const typed = die && this.#attempt(die, () => this.#signature(fn, die));
    const unread = this.#unread?.why(size);
    const known = typed ?? this.#bare(address, fn.symbol);
    return { address, ref, size, aliases, ...known, ...(unread !== undefined && { unread }) };
  }

  /** A function begins there that certainly takes no argument on the stack. */
  inRegisters(address: Addr): boolean {
    const found = this.#debug?.functionAt(address);
    if (found === undefined) return this.#signatures.takesNoneOnStack(address);
    const { die, low } = found;
    if (low !== address) return false;
    const symbol = this.#elf.symbols.at(address)?.name ?? linkageNameOf(die) ?? nameOf(die);
    return this.#attempt(die, () => this.#signature({ address, symbol }, die))?.stackArguments === false;
  }

  #bare(address: Addr, symbol: string | undefined): Signature {
    const listed = symbol === undefined ? undefined : this.#btf?.(symbol);
    if (listed) return { ...listed, result: undefined, producer: undefined };
    const registers = this.#arch.arguments.slice(0, rawArguments).map((register): FunctionArgument => {
      const where: ValuePlace = { kind: 'registers', parts: [{ register, offset: 0, size: 8 }] };
      return { name: register, type: undefined, shape: undefined, where };
    });
    const isShim = symbol !== undefined && allocatorShim.test(symbol);
    // Other functions of a kernel without debug info are assembly, which is entered and left in many ways.
    const isCompiled = this.#isProgram || isClone(symbol);
    const stackArguments = !isShim && !(isCompiled && this.#signatures.takesNoneOnStack(address));
    return { arguments: registers, result: undefined, stackArguments, producer: isShim ? 'rustc' : undefined };
  }

  #signature(fn: Pick<NamedFunction, 'address' | 'symbol'>, die: Die): Signature {
    const shapes = this.#shapes as Shapes;
    const producer = producerOf(die);
    const mangled = /^_(R|ZN)/.test(linkageNameOf(die) ?? fn.symbol ?? '');
    const convention: Convention = producer === 'rustc' && mangled ? rustConvention(die) : 'c';
    const resultType = typeOf(die);
    const resultShape = resultType && shapes.of(resultType);
    const calling: Calling = { arch: this.#arch, convention, floats: this.#floats };
    const returned = resultShape && placeResult(calling, resultShape);
    const children = [...unpackedChildren(die)];
    const parameters = children.filter((child) => child.tag === DW_TAG.formal_parameter);
    const types = parameters.map((parameter) => shapes.of(typeOf(parameter)));
    const inMemory = returned ? returned.inMemory : false;
    const entry = die.unit.codes.toCode(fn.address);
    const own = nameOf(die) ?? '';
    const hidden = hiddenRegisters(this.#arch, own, children, entry, inMemory);
    const untupled = convention !== 'c' && isUntupled(own, types);
    const described = parameters.map((parameter, i) =>
      describedPlace(this.#arch, parameter, entry, types[i]?.size ?? 0),
    );
    const placed = placeArguments(calling, untupled ? types.slice(0, -1) : types, hidden, described);
    const changed = changesOf(die, fn.symbol);
    const agrees =
      !changed.arguments && described.every((one, i) => one.kind !== 'place' || isSame(one.place, placed.places[i]));
    const variadic = children.some((child) => child.tag === DW_TAG.unspecified_parameters);
    return {
      arguments: parameters.map((parameter, i): FunctionArgument => {
        const shape = types[i] as Shape;
        const where = choose(described[i], placed.places[i], agrees);
        return { name: nameOf(parameter) ?? `arg${i}`, type: shape.name, shape, where };
      }),
      result:
        resultShape && returned && resultShape.size !== 0
          ? { type: resultShape.name, shape: resultShape, where: changed.result ? resultChanged : returned.place }
          : undefined,
      stackArguments:
        placed.stack ||
        variadic ||
        untupled ||
        ((changed.arguments ||
          // Line tables alone (the standard library's) do not name any.
          parameters.length === 0 ||
          // gcc says which functions it has changed.
          (producer !== 'gcc' && mostWords(types, described, hidden) > this.#arch.arguments.length)) &&
          !this.#signatures.takesNoneOnStack(fn.address)),
      producer,
    };
  }

  #attempt<T>(die: Die, read: (debug: DebugInfo) => T): T | undefined {
    const debug = this.#debug;
    return debug?.attempt(die.unit, () => read(debug));
  }
}

const resultChanged: ValuePlace = { kind: 'unavailable', why: 'the compiler may have left it out or changed it' };

/** If the optimiser changed a function's signature (it drops unused arguments), only the debug info is reliable. */
function choose(described: Described | undefined, placed: ValuePlace | undefined, agrees: boolean): ValuePlace {
  if (described?.kind === 'place') return described.place;
  if (described?.kind === 'frame' && placed && agrees) return placed;
  return described?.kind === 'nothing' ? { kind: 'unavailable', why: described.why } : { kind: 'unavailable' };
}

function isSame(found: ValuePlace, placed: ValuePlace | undefined): boolean {
  const [a, b] = [found, placed].map((place) =>
    place?.kind === 'registers'
      ? place.parts.map(({ register }) => register).join()
      : place?.kind === 'pointer' && place.register,
  );
  return a === b;
}

/** The compiler of a function. */
export function producerOf(die: Die): FunctionProbe['producer'] {
  const text = die.unit.root.string(DW_AT.producer) ?? '';
  // rustc's names LLVM and itself: `clang LLVM (rustc version 1.96.0)`.
  if (text.includes('rustc')) return 'rustc';
  if (text.includes('clang')) return 'clang';
  return text.startsWith('GNU') ? 'gcc' : undefined;
}

function nothingToProbe(
  elf: ElfFile,
  debug: DebugInfo | undefined,
  includes: readonly ProbeSpec[],
  allows: (paths: readonly string[], otherwise: boolean) => boolean,
  excluded: readonly ExcludedFunction[],
): RsptraceError {
  const [first] = excluded;
  if (first) {
    const names = excluded.slice(0, 3).map(({ name }) => name);
    return new RsptraceError('PROBE_UNSAFE', `what matches must not be probed (${names.join(', ')})`, {
      hint: `${first.name}: ${first.reason}; ${includes[0]?.prefix === 'fn' ? `fn:${first.name}! takes its entries all the same` : 'fn:NAME! takes its entries all the same'}`,
    });
  }
  const wanted = includes.map((spec) => `'${spec.text}'`).join(', ');
  const inlined = debug ? inlinedFunctions(debug) : [];
  const gone = inlined.filter(({ names }) => allows(names, false));
  if (gone[0]) {
    const into = [...new Set(gone[0].into)].slice(0, 3).join(', ');
    return new RsptraceError(
      'PROBE_INLINED',
      `the compiler inlined every function that matches (${gone
        .slice(0, 3)
        .map(({ name }) => name)
        .join(', ')})`,
      { hint: `probe where its code went: ${gone[0].name} was inlined into ${into}` },
    );
  }
  const known = [...namedFunctions(elf, debug)].filter((one) => one.isFunction).map(({ name }) => name);
  if (known.length === 0 && !debug) return debugInfoMissing(elf);
  const near = includes.flatMap((spec) => nearest(spec.glob, [...known, ...inlined.map(({ name }) => name)]));
  return new RsptraceError('PROBE_NO_MATCH', `no function matches ${wanted}`, {
    hint:
      near.length > 0
        ? `nearest: ${[...new Set(near)].slice(0, 4).join(', ')}`
        : `--probe '${includes[0]?.prefix ?? 'fn'}:**' takes every function`,
  });
}
