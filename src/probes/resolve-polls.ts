import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { FutureSet, FutureType, PollFunction } from '../dwarf/index.js';
import type { FutureRef } from '../trace/index.js';
import { nearest } from './glob.js';
import { type ProbeSpec, whiteList } from './probe-spec.js';

/** One poll function to watch, and all that a hit at its entry needs to know. */
export interface PollProbe {
  readonly address: Addr;
  readonly poll: PollFunction;
  readonly future: FutureType;
  readonly ref: FutureRef;
  /** Other Futures whose poll the linker folded into this address: their polls are counted under this one's name. */
  readonly aliases: readonly FutureType[];
  /** The register that holds the Future's address at entry. */
  readonly selfRegister: string;
  /** The register that holds the address of the result at entry, where the result is too large for registers. */
  readonly resultPointer: string | undefined;
}

export interface PollProbes {
  readonly probes: readonly PollProbe[];
  /** Every Future by type, for naming what is found in memory. */
  ref(future: FutureType): FutureRef;
  /** True when the white list lets this Future through, whether or not it has a poll of its own. */
  allows(future: FutureType): boolean;
}

/** Results of up to two registers come back in registers under both psABIs and rustc's own ABI. */
const registerBytes = 16;

/**
 * Resolves poll probes to addresses. Without a spec that includes, all polls of the program's own crates are taken.
 * @throws RsptraceError `PROBE_NO_MATCH`, with the nearest names; `PROBE_INLINED` when all that matches was inlined
 */
export function resolvePolls(futures: FutureSet, arch: Architecture, specs: readonly ProbeSpec[]): PollProbes {
  const list = whiteList(specs);
  const refs = new Map<FutureType, FutureRef>();
  const ref = (future: FutureType): FutureRef => {
    let known = refs.get(future);
    if (!known) {
      const { future: name, instance, kind, file, line } = future;
      known = { key: refs.size + 1, future: name, instance, kind, file, line };
      refs.set(future, known);
    }
    return known;
  };
  const allowed = new Set(futures.all.filter((future) => list.allows([future.future, future.instance], isOwn(future))));
  const byAddress = new Map<bigint, { future: FutureType; poll: PollFunction; aliases: FutureType[] }>();
  for (const future of allowed) {
    for (const poll of future.polls) {
      const known = byAddress.get(poll.address);
      if (known) known.aliases.push(future);
      else byAddress.set(poll.address, { future, poll, aliases: [] });
    }
  }
  if (byAddress.size === 0) throw nothingToProbe(futures, specs, allowed);
  const probes = [...byAddress.values()].map(({ future, poll, aliases }): PollProbe => {
    const inMemory = poll.resultSize > registerBytes;
    const [first, second] = arch.arguments as [string, string];
    const told = poll.self === undefined ? undefined : arch.dwarfRegister(poll.self.register);
    return {
      address: poll.address,
      poll,
      future,
      ref: ref(future),
      aliases,
      selfRegister: told ?? (inMemory ? second : first),
      resultPointer: inMemory ? first : undefined,
    };
  });
  probes.sort((a, b) => (a.address < b.address ? -1 : 1));
  return { probes, ref, allows: (future) => allowed.has(future) };
}

const languageCrates = new Set(['core', 'alloc', 'std', 'proc_macro', 'test', 'compiler_builtins']);

/** True for the program's own crates: not the language's, not those that came from a registry or from a git checkout. */
export function isOwn(future: FutureType): boolean {
  if (languageCrates.has(future.crate)) return false;
  const files = [future.file, ...future.polls.map((poll) => poll.declFile)];
  return !files.some(
    (file) => file !== undefined && /\/registry\/|\/git\/checkouts\/|\/rustc\/|\/library\//.test(file),
  );
}

function nothingToProbe(
  futures: FutureSet,
  specs: readonly ProbeSpec[],
  allowed: ReadonlySet<FutureType>,
): RsptraceError {
  const includes = specs.filter((spec) => !spec.excludes);
  if (futures.all.length === 0) {
    return new RsptraceError('PROBE_NO_FUTURES', 'the program has no Future that DWARF tells of', {
      hint: 'is it the right ELF, built from Rust with async code and debug = 2?',
    });
  }
  if (allowed.size > 0) {
    const [first] = allowed;
    return new RsptraceError(
      'PROBE_INLINED',
      `the compiler inlined every poll that matches (${[...allowed]
        .slice(0, 3)
        .map((future) => future.future)
        .join(', ')})`,
      {
        hint: `probe the Future that awaits it: its inner states are derived${first?.inlined[0] ? ` (it was inlined into ${first.inlined[0].into})` : ''}`,
      },
    );
  }
  if (includes.length === 0) {
    return new RsptraceError('PROBE_NO_MATCH', "none of the program's own crates has a poll function", {
      hint: "--probe 'poll:**' takes those of all crates",
    });
  }
  const names = futures.all.map((future) => future.future);
  const near = includes.flatMap((spec) => nearest(spec.glob, names));
  return new RsptraceError(
    'PROBE_NO_MATCH',
    `no Future matches ${includes.map((spec) => `'${spec.text}'`).join(', ')}`,
    {
      hint:
        near.length > 0
          ? `nearest: ${[...new Set(near)].slice(0, 4).join(', ')}`
          : "--probe 'poll:**' takes every Future",
    },
  );
}
