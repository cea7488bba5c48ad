import type { Architecture, CallRegisters, TrapExit, TrapKind, TrapSetter } from '../../../arch/index.js';
import { type Addr, hex } from '../../../base/addr.js';
import { RsptraceError } from '../../../base/errors.js';
import { isLinuxProgram } from '../../../target/index.js';
import { noMatch } from '../../glob.js';
import { functionsAround } from '../../seek-functions.js';
import type { Found, ProbedProgram } from '../kind.js';
import { type ProbeSpec, whiteList } from '../names.js';

/** `irq:GLOB`: traps by what they are called, `irq::supervisor_timer`, `syscall::64`. */
export interface TrapSpec extends ProbeSpec {
  /** Of this kind alone. */
  readonly of: TrapKind | undefined;
}

interface SeenTraps {
  /** What traps were called that nobody has asked for. */
  readonly others: Set<string>;
  /** Returns from traps whose entry was not seen. */
  returnsAlone: number;
  /** Returns are not watched, because no trap that is wanted has begun for long. */
  areIdle: boolean;
  /** The guest has made no progress between interrupts. */
  isStorm: boolean;
}

export interface FoundTraps extends Found {
  readonly setters: readonly TrapSetter[];
  readonly exits: readonly TrapExit[];
  /** The address of each of them, and what it is for people. */
  readonly places: readonly { readonly address: Addr; readonly name: string }[];
  /** `paths`: all names of one trap. */
  readonly wants: (paths: readonly string[]) => boolean;
  /** A trap of this kind may be wanted. */
  readonly mayWant: (kind: TrapKind) => boolean;
  /** Of a process: where its registers have what it asks the kernel. */
  readonly atCall?: CallRegisters;
  /** None is left out. */
  readonly isAll: boolean;
  /** What the tracer has seen that is no event. */
  readonly seen: SeenTraps;
}

/**
 * The instructions of a kernel that say where traps enter, and those that end traps.
 * @throws RsptraceError `PROBE_NO_MATCH`, `ARCH_UNSUPPORTED`
 */
export function resolveTraps(program: ProbedProgram, specs: readonly TrapSpec[]): FoundTraps {
  const { elf, arch, debug } = program;
  const { traps } = arch;
  const [first] = specs;
  if (isLinuxProgram(elf)) {
    const other = specs.find(({ of }) => of !== 'syscall');
    if (other) throw noKernel(other.text, false);
    return { ...callsOfProcess(arch, specs), ...wishesOf(specs) };
  }
  if (!traps) {
    throw new RsptraceError('ARCH_UNSUPPORTED', `how traps enter a kernel is not known of ${arch.name}`, {
      hint: `leave '${first?.text}' out`,
    });
  }
  const setters = new Map<bigint, TrapSetter>();
  const exits = new Map<bigint, TrapExit>();
  for (const { ranges } of functionsAround(elf, debug, (bytes) => traps.seek(bytes))) {
    for (const range of ranges) {
      const found = traps.find(range.bytes, range.start);
      for (const setter of found.setters) setters.set(setter.address, setter);
      for (const exit of found.exits) exits.set(exit.address, exit);
    }
  }
  if (setters.size === 0 || exits.size === 0) throw noKernel(first?.text ?? '', setters.size > 0);
  const name = (address: Addr): string =>
    debug?.functionAt(address)?.name ?? elf.symbols.at(address)?.name ?? hex(address);
  const places = [
    ...[...setters.keys()].map((key) => ({ address: key as Addr, name: `trap entries set in ${name(key as Addr)}` })),
    ...[...exits.keys()].map((key) => ({ address: key as Addr, name: `returns from traps in ${name(key as Addr)}` })),
  ];
  return {
    addresses: places.map(({ address }) => address),
    setters: [...setters.values()],
    exits: [...exits.values()],
    places,
    ...wishesOf(specs),
    isAll: specs.some(isEverything) && !specs.some(({ excludes }) => excludes),
  };
}

function wishesOf(specs: readonly TrapSpec[]): Pick<FoundTraps, 'wants' | 'mayWant' | 'seen'> {
  const list = whiteList(specs);
  return {
    wants: (paths) => list.allows(paths, true),
    mayWant: (kind) => specs.some((spec) => !spec.excludes && (spec.of === undefined || spec.of === kind)),
    seen: { others: new Set(), returnsAlone: 0, areIdle: false, isStorm: false },
  };
}

function isEverything({ glob, of, excludes }: TrapSpec): boolean {
  return glob === '**' && of === undefined && !excludes;
}

function noKernel(text: string, sets: boolean): RsptraceError {
  const missing = sets ? 'returns from a trap' : 'says where traps enter';
  return new RsptraceError('PROBE_NO_MATCH', `'${text}' needs a kernel: no instruction of the program ${missing}`, {
    hint: "give the ELF of the kernel; of a process 'syscall:**' takes the system calls",
  });
}

/** More than Linux has. */
const mostCalls = 1024;

/**
 * The system calls of a process, which its stub reports.
 * @throws RsptraceError `PROBE_NO_MATCH`, `ARCH_UNSUPPORTED`
 */
function callsOfProcess(
  { name, linux }: Architecture,
  specs: readonly TrapSpec[],
): Omit<FoundTraps, 'wants' | 'mayWant' | 'seen'> {
  const { atCall, callName } = linux ?? {};
  const text = specs[0]?.text ?? '';
  if (!atCall || !callName) {
    throw new RsptraceError('ARCH_UNSUPPORTED', `what a process has at its system calls is not known of ${name}`, {
      hint: `leave '${text}' out`,
    });
  }
  const calls = Array.from({ length: mostCalls }, (_, number) => `syscall::${callName(number) ?? number}`);
  const includes = specs.filter(({ excludes }) => !excludes);
  const isAll = includes.some(({ glob }) => glob === '**') && includes.length === specs.length;
  const { allows } = whiteList(specs);
  const numbers = calls.flatMap((call, number) => (allows([call], true) ? number : []));
  if (numbers.length === 0) {
    const names = calls.flatMap((_, number) => callName(number) ?? []);
    throw noMatch('system call', includes, names, "'syscall:**' takes all of them");
  }
  return {
    ...{ addresses: [], setters: [], exits: [], places: [], isAll, atCall },
    unmatched: includes.filter(({ matches }) => !calls.some(matches)).map((spec) => spec.text),
    systemCalls: { of: isAll ? 'all' : numbers, text },
  };
}
