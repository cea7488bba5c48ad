import { BlockEdges, mostLevels } from '../../inlined-code.js';
import { planInside } from '../../inner-windows.js';
import type { ReadPlan } from '../../read-plan.js';
import type { InlinedLock } from './inlined.js';

/** Blocks of polls have higher keys. */
const firstKey = -(2n ** 40n);
/** Groups of places of polls have lower numbers. */
const firstGroup = 2 ** 20;

/** A copy's block has its number in the list. Copies do not nest, and lie within all polls of their frame. */
export function inlinedEdges(copies: readonly InlinedLock[]): BlockEdges<InlinedLock['begins'][number]> {
  const edgesOf = (copy: InlinedLock, block: number) => ({ ...copy, block, key: firstKey - BigInt(block) });
  const takes = copies.flatMap((copy, block) => (copy.role.does === 'release' ? [] : [edgesOf(copy, block)]));
  return new BlockEdges(takes.map((copy) => ({ ...copy, level: mostLevels })));
}

/** What the places of a copy read: the lock's address, and where the frame is. */
export function planCopy(copy: InlinedLock, block: number): readonly ReadPlan[] {
  const { name, into, begins, ends, scratchIsFree } = copy;
  const isRelease = copy.role.does === 'release';
  const planOf = ({ address, window }: InlinedLock['ends'][number]): ReadPlan => ({
    ...planInside(address, `${name} in ${into}`, { window, scratchIsFree }, [firstGroup + block]),
    subject: name,
  });
  const begun = begins.map((begin): ReadPlan => {
    const { register, through } = begin.lock;
    const registers = [...(register === undefined ? [] : [register]), ...(isRelease ? [] : [begin.frame.register])];
    const word = {
      pointer: register ?? '',
      from: through ?? 0,
      align: 8,
      size: 8,
      loads: [{ offset: 0, size: 8 }],
    } as const;
    return {
      ...planOf(begin),
      entryRegisters: [...new Set(registers)],
      entryReads: through === undefined ? [] : [word],
    };
  });
  const ended = ends.map((end): ReadPlan => ({ ...planOf(end), entryRegisters: [end.frame.register] }));
  return [...begun, ...ended];
}
