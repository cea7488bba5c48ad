import type { Logger } from '../base/logger.js';
import { type HiddenMemory, isRefusal, type Refusal } from '../probes/scratch/index.js';

/** The machine that we started may be reset: QEMU loads its program anew then, and nothing of ours is in that any more. */
export interface Resets {
  /** It was reset, and has not run since. */
  readonly happened: boolean;
  /** See `HiddenMemory.atReset`. */
  at(pc: bigint, hart: string | undefined): ReturnType<HiddenMemory['atReset']>;
  /** After a reset, before it runs on without us: the kernel is not told of the hidden RAM this time either. */
  hideAgain(): Promise<void>;
}

/** Plants a breakpoint at the reset vector where RAM is hidden: what comes after a reset would run over it. */
export async function watchResets(
  hidden: HiddenMemory | Refusal | undefined,
  logger: Logger,
  onReset: () => void,
): Promise<Resets> {
  let happened = false;
  const memory = hidden && !isRefusal(hidden) ? hidden : undefined;
  if (memory && !(await memory.watchReset()))
    logger.warn({}, 'the stub takes no breakpoint at the reset vector: a reset goes unseen');
  return {
    get happened() {
      return happened;
    },
    async at(pc, hart) {
      const found = (await memory?.atReset(pc, hart)) ?? 'elsewhere';
      if (found === 'reset') {
        happened = true;
        onReset();
      }
      return found;
    },
    async hideAgain() {
      const refused = happened ? await memory?.hideAgain() : undefined;
      if (refused) logger.warn({ why: refused.refused }, 'the kernel is told of all RAM after this reset');
    },
  };
}
