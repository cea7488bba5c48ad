import type { TakenOut } from '../inject/index.js';
import { plural } from '../text/index.js';

/** What became of a process whose rsptrace was killed: a sentence. */
export function takenOutText({ pid, patches, traps }: TakenOut & { readonly pid: number }): string {
  const what = [
    ...(patches.length > 0 ? [plural(patches.length, 'patch').replace('patchs', 'patches')] : []),
    ...(traps.length > 0 ? [plural(traps.length, 'breakpoint')] : []),
  ];
  return what.length === 0
    ? `Nothing of it was in the code of process ${pid}, which runs on`
    : `${what.join(' and ')} of it were taken out of process ${pid}, which runs on`;
}
