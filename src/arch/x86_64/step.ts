import { type Addr, addOffset } from '../../base/addr.js';
import type { Step } from '../inject/code-path.js';
import { decode } from './decode.js';

/** See `ProbeCode.step`. A call is stepped over. The decoder must be loaded (`prepare`). */
export function step(code: Uint8Array, start: Addr, offset: number): Step | undefined {
  const instruction = decode(code, addOffset(start, offset), offset);
  if (instruction === undefined) return undefined;
  const { length, flow, target, op } = instruction;
  return {
    length,
    jumps: flow === 'jump' || flow === 'return' ? (target ?? 'away') : undefined,
    branches: flow === 'branch' ? target : undefined,
    readsTime: op === 'rdtsc',
  };
}
