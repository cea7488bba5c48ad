import type { Architecture, StackSwitch } from '../../../arch/index.js';
import { type Addr, hex } from '../../../base/addr.js';
import { RsptraceError } from '../../../base/errors.js';
import { namedFunctions } from '../../function-names.js';
import { compileGlob, nearest } from '../../glob.js';
import { functionsAround } from '../../seek-functions.js';
import type { Found, ProbedProgram } from '../kind.js';
import { type ProbeSpec, whiteList } from '../names.js';
import { ThreadNames } from './names.js';

/** A function that hands a hart from one thread to another. */
export interface SwitchFunction {
  readonly address: Addr;
  /** Bytes of its code. */
  readonly size: number;
  readonly name: string;
  /** The register with the context that it fills, and how far from its caller's the stack pointer is that it saves. */
  readonly from: { readonly register: string; readonly saved: number };
  /** The register with the context that it goes on with; or with the stack pointer itself, less `offset`. */
  readonly to: { readonly register: string; readonly offset: number; readonly isContext: boolean };
}

export interface FoundSwitches extends Found {
  readonly functions: readonly SwitchFunction[];
  readonly names: ThreadNames;
  /** By all of its names. */
  readonly wantsThread: (names: readonly string[]) => boolean;
  /** What the tracer has seen that is no event. */
  readonly seen: {
    /** Switches away from another thread than the hart had. */
    missed: number;
    /** Threads that are not asked for, by their names. */
    readonly others: Set<string>;
  };
}

/**
 * The functions of a program that return on another stack, by what their code does.
 * @throws RsptraceError `PROBE_NO_MATCH`, `ARCH_UNSUPPORTED`
 */
export function resolveSwitches(program: ProbedProgram, specs: readonly ProbeSpec[]): FoundSwitches {
  const { elf, arch, debug } = program;
  const [first] = specs;
  if (!arch.frames?.code) {
    throw new RsptraceError('ARCH_UNSUPPORTED', `the code of functions is not understood on ${arch.name}`, {
      hint: `leave '${first?.text}' out`,
    });
  }
  const all = [...namedFunctions(elf, debug)];
  const { ofFunctions, wantsThread } = meantBy(specs, all);
  const list = whiteList(ofFunctions);
  const namesAt = (address: Addr): readonly string[] =>
    all.filter((one) => one.address === address).flatMap(({ names }) => names);
  const functions: SwitchFunction[] = [];
  const others: string[] = [];
  for (const one of candidates(program)) {
    const names = namesAt(one.address);
    const known = functionOf(arch, one, names[0] ?? hex(one.address));
    if (typeof known === 'string') others.push(known);
    else if (known && list.allows([...names, known.name], true)) functions.push(known);
    else if (known) others.push(known.name);
  }
  if (functions.length === 0) {
    const wanted = all.filter(({ names }) => list.allows(names, false));
    throw nothingFound(
      ofFunctions.length > 0 ? ofFunctions : specs,
      others,
      wanted.map(({ name }) => name),
      all.map(({ name }) => name),
    );
  }
  return {
    addresses: functions.map(({ address }) => address),
    functions,
    names: new ThreadNames(elf, debug),
    wantsThread,
    seen: { missed: 0, others: new Set() },
  };
}

/** Which probes name a function, and what the others say of threads: all that have a glob, and names of no function. */
function meantBy(
  specs: readonly ProbeSpec[],
  all: readonly { readonly names: readonly string[] }[],
): { readonly ofFunctions: readonly ProbeSpec[]; readonly wantsThread: FoundSwitches['wantsThread'] } {
  const isEverything = ({ glob }: ProbeSpec): boolean => /^\*+$/.test(glob);
  const isFunction = (spec: ProbeSpec): boolean =>
    isEverything(spec) || (!/[*?]/.test(spec.glob) && all.some(({ names }) => names.some(spec.matches)));
  const ofFunctions = specs.filter(isFunction);
  const ofThreads = specs
    .filter((spec) => !isFunction(spec))
    // A thread's name has no path segments.
    .map((spec) => ({ ...spec, matches: compileGlob(spec.glob.replaceAll(/\*+/g, '**')) }));
  const threads = whiteList(ofThreads);
  const wantsAll = !threads.hasIncludes || ofFunctions.some((spec) => !spec.excludes && isEverything(spec));
  return {
    ofFunctions,
    wantsThread: (names) => (wantsAll ? !threads.hasExcluded(names) : threads.allows(names, false)),
  };
}

interface Candidate {
  readonly address: Addr;
  readonly size: number;
  readonly does: StackSwitch;
}

function* candidates({ elf, arch, debug }: ProbedProgram): Generator<Candidate> {
  const reading = arch.frames?.code;
  if (!reading) return;
  for (const { ranges } of functionsAround(elf, debug, (bytes) => reading.seekStackSwitches(bytes))) {
    const [range] = ranges;
    const does = range && reading.stackSwitch(range);
    if (does) yield { address: range.start, size: range.bytes.length, does };
  }
}

/** Undefined if its registers have no names; its name where the two contexts are not alike. */
function functionOf(
  { dwarfRegister }: Architecture,
  { address, size, does }: Candidate,
  name: string,
): SwitchFunction | string | undefined {
  const [from, to] = [dwarfRegister(does.from.register), dwarfRegister(does.to.register)];
  if (from === undefined || to === undefined) return undefined;
  const { isLoaded: isContext, offset } = does.to;
  // Nothing says then whether both arguments are what is called a context here.
  if (isContext && offset !== does.from.offset) return name;
  return { address, size, name, from: { register: from, saved: does.saved }, to: { register: to, offset, isContext } };
}

function nothingFound(
  specs: readonly ProbeSpec[],
  others: readonly string[],
  matched: readonly string[],
  all: readonly string[],
): RsptraceError {
  const wanted = specs.map(({ text }) => `'${text}'`).join(', ');
  if (matched.length > 0 && matched.length < all.length) {
    const what = matched.slice(0, 3).join(', ');
    return new RsptraceError(
      'PROBE_NO_MATCH',
      `${what} does not save its caller's stack pointer and take another one`,
      {
        hint:
          others.length > 0 ? `these do: ${others.slice(0, 4).join(', ')}` : `'fn:${matched[0]}!' takes its entries`,
      },
    );
  }
  const near = specs.flatMap(({ glob }) => (/^\*+$/.test(glob) ? [] : nearest(glob, all)));
  return new RsptraceError(
    'PROBE_NO_MATCH',
    `${wanted}: no such function of the program saves the stack pointer and takes another one`,
    {
      hint:
        others.length > 0
          ? `these switch stacks: ${others.slice(0, 4).join(', ')}`
          : near.length > 0
            ? `nearest: ${near.slice(0, 4).join(', ')}`
            : 'it may be inlined, or all its switches happen in a trap: then irq:** and syscall:** show where it goes',
    },
  );
}
