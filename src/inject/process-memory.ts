import type { Architecture, ProbeCode } from '../arch/index.js';
import type { Session } from '../rsp/index.js';
import type { SitePlan } from './sites.js';

/** Bytes for the code of one probe in a process. Memory that is not used costs nothing there. */
const codeBytes = 2048;
/** Bytes for a patched exit of a function. */
const endBytes = 512;
const ringBytes = 16 << 20;

/** How many bytes the trampolines of a plan need in a process. */
export function processMemory({ sites }: SitePlan): { readonly codeSize: number; readonly dataSize: number } {
  const ends = sites.reduce((sum, site) => sum + Math.max(0, ...(site.ends ?? []).map((way) => way.length)), 0);
  return { codeSize: codeBytes * (sites.length + 8) + endBytes * ends, dataSize: ringBytes };
}

/** Why every probe must stop this process, whatever memory there is; undefined if trampolines can be used. */
export function whyProcessStops({ features }: Session): string | undefined {
  if (features.supported.get('fork-events') === '+') return undefined;
  return 'the stub does not tell of forks, whose children would write into the same ring';
}

/** Trampolines that wait for room no longer than they are allowed to. */
export function processCode({ probeCode }: Architecture): ProbeCode | undefined {
  const process = probeCode?.process;
  return probeCode && process && { ...probeCode, wait: process.wait };
}
