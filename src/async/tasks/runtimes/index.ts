import type { Runtime } from '../runtime.js';
import { asyncTask } from './async-task.js';
import { boxes } from './boxes.js';
import { compio } from './compio.js';
import { embassy } from './embassy.js';
import { glommio } from './glommio.js';
import { type HeaderTasks, headerRuntime } from './header-tasks.js';
import { monoio } from './monoio.js';
import { tokio } from './tokio.js';

/** Those with a header that points to a vtable, and nothing more. */
export const headerTasks: readonly HeaderTasks[] = [monoio, glommio, compio];

/** The runtimes that are known, each in a file of its own. A program may use several. */
export const runtimes: readonly Runtime[] = [tokio, asyncTask, embassy, ...headerTasks.map(headerRuntime)];

/** Any other executor: asked last, about what no runtime and no await tree has found. */
export const search: Runtime = boxes;
