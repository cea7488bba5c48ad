import { linesOf } from '../api/index.js';
import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { ElfFile } from '../elf/index.js';
import { compileGlob, nearest, StaticCalls } from '../probes/index.js';
import { addressesOf, type Program } from '../record/index.js';
import { architectureFor, isLinuxProgram } from '../target/index.js';
import { plural } from '../text/index.js';
import { type CallBegin, CallsBelow, FunctionGraph, type Lines, type TraceSink, wholeText } from '../trace/index.js';
import { ExitCode, note, reportError } from './failure.js';
import { type LiveTarget, liveTarget, unkept } from './live-target.js';
import type { GraphArguments } from './options/saved-trace.js';
import { withRecording } from './recording/prepare.js';
import { abortWithoutReader } from './standard-streams.js';

type Arguments = GraphArguments & { readonly fn: string; readonly command: readonly string[] };

/** Without -D. */
const usualDepth = 4;

/**
 * `rsptrace graph --fn GLOB [--remote ADDR | --pid PID] [ELF] [-- arguments]`: these functions and what they call, as
 * it happens, as ftrace's function_graph prints it. Gives the exit status.
 */
export async function liveGraph(args: Arguments): Promise<number> {
  const depth = args.depth ?? usualDepth;
  const subject = liveTarget({ ...args, elf: args.trace });
  const { names, roots } = await calledBelow(subject, args.fn, depth);
  const asked = recordArguments(args, subject.elf, names);
  let open = 0;
  const into = (program: Program): TraceSink => graphOf(program, args.fn, depth, () => open++);
  return await withRecording(
    asked,
    async (prepared) => {
      const ending = new AbortController();
      using _read = abortWithoutReader(ending);
      const recording = await subject.record(prepared, asked, { ending: ending.signal });
      note(
        `${plural(roots, 'function')} with ${plural(names.length - roots, 'callee')}, ${depth} levels deep; ${plural(recording.events, 'event')}, ${plural(recording.stops, 'stop')}`,
        open > 0 && 'some of them call through pointers: what they call so is shown if others call it too',
      );
      if (recording.error === undefined) return ExitCode.recorded;
      reportError(recording.error);
      return ExitCode.cutShort;
    },
    subject.place,
    into,
  );
}

/** The names of what is to be probed, out of the program's code. Throws `PROBE_NO_MATCH`. */
async function calledBelow({ elf: path, isProcess }: LiveTarget, fn: string, depth: number) {
  const elf = await openProgram(path, fn);
  if (isProcess && !isLinuxProgram(elf)) {
    throw new RsptraceError('USAGE', `${path} is no program that Linux starts`, {
      hint: '--remote ADDR is the stub of the machine that it runs on',
    });
  }
  const arch = architectureFor(elf);
  await arch.prepare();
  const calls = new StaticCalls({ elf, arch, debug: linesOf(elf) });
  const matches = compileGlob(fn);
  const all = [...calls.functions()].filter(({ isFunction }) => isFunction);
  const roots = all.filter(({ names }) => names.some(matches)).map(({ address }) => address);
  if (roots.length === 0)
    throw noFunction(
      path,
      fn,
      all.map(({ name }) => name),
    );
  const below = [...calls.below(roots, depth).values()];
  // A generic function has its name once an instance, most of which are called elsewhere.
  return { roots: roots.length, names: [...new Set(below.map(({ symbol, name }) => symbol ?? name))] };
}

async function openProgram(path: string, fn: string): Promise<ElfFile> {
  try {
    return await ElfFile.open(path);
  } catch (error) {
    if (!(error instanceof RsptraceError) || error.code !== 'ELF_NOT_ELF') throw error;
    throw new RsptraceError(error.code, error.message, {
      hint: `of a saved trace the function stands behind its name: rsptrace graph ${path} '${fn}'`,
      cause: error,
    });
  }
}

function noFunction(elf: string, glob: string, names: readonly string[]): RsptraceError {
  const near = nearest(glob, names);
  return new RsptraceError('PROBE_NO_MATCH', `--fn '${glob}' matches no function of ${elf}`, {
    hint: near.length > 0 ? `nearest: ${near.join(', ')}` : "--fn '**' would be all",
  });
}

/** What `rsptrace --remote` would be given. */
function recordArguments(args: Arguments, elf: string, names: readonly string[]) {
  return {
    ...{ ...unkept, elf, wakes: 'never' as const, scratch: args.scratch },
    ...{ probe: names.map((name) => `fn:${name}`), engine: args.engine ?? unkept.engine },
    ...{ duration: args.duration, 'max-events': args['max-events'] },
  };
}

/** `onOpen`: called for each function that calls through pointers. */
function graphOf(program: Program, fn: string, depth: number, onOpen: () => void): TraceSink {
  const calls = new StaticCalls(program);
  const probed = new Set(addressesOf(program));
  const matches = compileGlob(fn);
  for (const address of probed) if (calls.of(address).isOpen) onOpen();
  const out = new FunctionGraph(stdout);
  return new CallsBelow(out, {
    depth,
    isRoot: ({ function: { name, instance } }) => matches(name) || matches(instance),
    isForeign: (outer, inner) => isForeign(calls, probed, outer, inner),
    interrupt: (begin, time, isOver) => out.interrupt(begin, time, isOver),
  });
}

/** Whether the code says that no way leads from one function to the other but over functions that are probed. */
function isForeign(calls: StaticCalls, probed: ReadonlySet<Addr>, outer: CallBegin, inner: CallBegin): boolean {
  const seen = new Set<Addr>();
  const waiting = [outer.function.address];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { direct, isOpen } = calls.of(at);
    if (isOpen || direct.has(inner.function.address)) return false;
    for (const callee of direct) {
      if (probed.has(callee) || seen.has(callee)) continue;
      seen.add(callee);
      waiting.push(callee);
    }
  }
  return true;
}

/** Each line at once: it is looked at while the target runs. */
const stdout: Lines = {
  textRecord: (text) => void process.stdout.write(wholeText(text)),
  flush: () => {},
  close: () => {},
};
