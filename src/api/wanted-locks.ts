// What locks the harts of a machine want that stands, without a recording: out of their stacks alone.
import { type Addr, addr } from '../base/addr.js';
import { LockNames, lockRole } from '../probes/index.js';
import { type CodePlace, codePlace } from '../target/stacks/index.js';
import { type Frame, FrameVariables, SourceFrames } from '../target/unwind/index.js';
import { guardsOn, type LockGuard } from './lock-holders.js';
import type { TaskView, Understood } from './views.js';

/** A hart in a function that takes a lock. Whether it has waited there for long, one look does not show. */
export interface WantedLock {
  readonly hart: number;
  /** The function that takes the lock. */
  readonly inside: string;
  /** The static that it lies in, or its type; undefined if the debug info does not say where it is. */
  readonly lock: string | undefined;
  readonly address: Addr | undefined;
  /** The function that wants it. */
  readonly by: CodePlace['own'];
  /** What an interrupt has interrupted before: it may be the holder. */
  readonly interrupted: CodePlace['own'];
  /** Guards of it in scope on harts' stacks: who holds it, if that was not dropped early. */
  readonly guards: readonly LockGuard[];
}

/** Those of all harts. */
export async function wantedLocks(
  { elf, debug }: Pick<Understood, 'elf' | 'debug'>,
  { frames, harts, memory }: Pick<TaskView, 'frames' | 'harts' | 'memory'>,
): Promise<readonly WantedLock[]> {
  const sources = new SourceFrames(elf, debug);
  const variables = new FrameVariables(debug, memory);
  let keys = 0;
  const names = new LockNames({ elf, debug, nextKey: () => keys++ });
  const found: WantedLock[] = [];
  for (const [index, stack] of frames.entries()) {
    const taking = takingOn(stack, sources);
    const hart = harts[index];
    if (taking === undefined || hart === undefined) continue;
    const pointer = await lockPointer(stack.slice(0, taking.frames), variables);
    const known = pointer && names.of(pointer.address, { name: pointer.target, size: undefined }, addr(0n));
    const at = stack.findIndex(({ exact }, level) => exact && level >= taking.frames);
    const interrupted = at < 0 ? undefined : codePlace(stack.slice(at), sources).own;
    const { inside, by } = taking;
    const guards: LockGuard[] = [];
    for (const [other, on] of harts.entries()) {
      const its = { hart: on, stack: frames[other] ?? [], sources };
      if (known) guards.push(...(await guardsOn(its, known, variables)));
    }
    found.push({ hart, inside, lock: known?.names[0], address: known?.address, by, interrupted, guards });
  }
  return found;
}

/** `frames`: so many are the taking function's, and of those that it has called. */
type Taking = Pick<WantedLock, 'inside' | 'by'> & { readonly frames: number };

/** The function that takes a lock in which a stack is; it may be inlined, and have called others of a lock. */
function takingOn(stack: readonly Frame[], sources: SourceFrames): Taking | undefined {
  let inside: string | undefined;
  for (const [index, frame] of stack.entries()) {
    for (const source of sources.of(frame)) {
      const { function: name } = source;
      if (name !== undefined && lockRole(name)?.does === 'take') inside = name;
      else if (inside !== undefined) return { inside, by: source, frames: index + (source.inlined ? 1 : 0) || 1 };
      // What it calls while it waits: a hint to the processor, an atomic access.
      else if (index >= mostInner) return undefined;
    }
  }
  return undefined;
}

const mostInner = 3;

/** The lock that the outermost of these was called with. */
async function lockPointer(
  frames: readonly Frame[],
  variables: FrameVariables,
): Promise<{ readonly address: Addr; readonly target: string } | undefined> {
  for (const frame of [...frames].reverse()) {
    for (const { parameter, value } of await variables.of(frame)) {
      if (!parameter || value.kind !== 'pointer' || value.style === 'fn') continue;
      return { address: value.address, target: value.type.replace(/^(&(mut )?|\*(const|mut) )/, '') };
    }
  }
  return undefined;
}
