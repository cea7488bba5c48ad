import type { ScratchSource } from '../source.js';
import { hiddenRam } from './hidden-ram.js';
import { processMap } from './process-map.js';
import { programAllocator } from './program-allocator.js';
import { reservedSection } from './reserved-section.js';
import { endOfRam } from './top-of-ram.js';
import { unlisted } from './unlisted.js';
import { userNamed } from './user-named.js';

/** In the order in which they are asked. */
export const sources: readonly ScratchSource[] = [
  userNamed,
  endOfRam,
  processMap,
  reservedSection,
  hiddenRam,
  unlisted,
  programAllocator,
];
