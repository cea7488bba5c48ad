import type { Session } from '../rsp/index.js';

/** Code of a probe in a process, where memory that is not used costs nothing, in bytes. */
const codeBytes = 2048;
const ringBytes = 16 << 20;

/** How much memory trampolines at so many places want of a process, in bytes. */
export function processMemory(places: number): { readonly codeSize: number; readonly dataSize: number } {
  return { codeSize: codeBytes * (places + 8), dataSize: ringBytes };
}

/** Why every probe stops the process of a session, whatever memory there is; undefined where it need not. */
export function whyProcessStops({ features }: Session): string | undefined {
  if (features.supported.get('fork-events') === '+') return undefined;
  return 'the stub does not tell of forks, whose children would write into the same ring';
}
