import type { Runtime } from '../runtime.js';
import { asyncTask } from './async-task.js';
import { boxes } from './boxes.js';
import { embassy } from './embassy.js';
import { tokio } from './tokio.js';

/** The runtimes that are known, each in a file of its own. A program may use several. */
export const runtimes: readonly Runtime[] = [tokio, asyncTask, embassy];

/** Any other executor: asked last, about what no runtime and no await tree has found. */
export const search: Runtime = boxes;
