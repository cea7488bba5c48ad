import type { SectionKind } from '../section.js';
import { alive } from './alive.js';
import { between } from './between.js';
import { counts } from './counts.js';
import { findings } from './findings.js';
import { never, order, reach } from './occurrences.js';
import { times } from './times.js';

/** Every section that a budget file may have, in the order in which `--update` writes them. */
export const sections: readonly SectionKind[] = [reach, never, order, counts, times, between, alive, findings];
