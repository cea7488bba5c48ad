import type { Architecture, ProbeCode } from '../../arch/index.js';
import type { Session } from '../../rsp/index.js';
import type { SitePlan } from './sites.js';

/** Code of a probe in a process, where memory that is not used costs nothing, in bytes. */
const codeBytes = 2048;
/** Of a patched end of a function. */
const endBytes = 512;
const ringBytes = 16 << 20;

/** How much memory the trampolines of a plan want of a process, in bytes. */
export function processMemory({ sites }: SitePlan): { readonly codeSize: number; readonly dataSize: number } {
  const ends = sites.reduce((sum, site) => sum + Math.max(0, ...(site.ends ?? []).map((way) => way.length)), 0);
  return { codeSize: codeBytes * (sites.length + 8) + endBytes * ends, dataSize: ringBytes };
}

/** Why every probe stops the process of a session, whatever memory there is; undefined where it need not. */
export function whyProcessStops({ features }: Session): string | undefined {
  if (features.supported.get('fork-events') === '+') return undefined;
  return 'the stub does not tell of forks, whose children would write into the same ring';
}

/** Trampolines that sleep where those of a machine spin. */
export function processCode({ probeCode }: Architecture): ProbeCode | undefined {
  const process = probeCode?.process;
  return probeCode && process && { ...probeCode, wait: process.wait, spinsPerSecond: process.spins };
}
