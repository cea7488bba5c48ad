import { runtimes, search } from '../async/tasks/index.js';
import { kinds } from '../probes/index.js';
import { formats } from '../trace/index.js';
import type { OptionTexts } from './option-texts.js';

/** `'poll:GLOB' traces these Futures, ...`; `.pftrace (Perfetto): timelines of harts, ...`; `tokio, embassy, ...`. */
export const listTexts: OptionTexts = {
  probes: kinds.map(({ help }) => help).join(', '),
  formats: formats.map(({ extensions, name, about }) => `${extensions[0]} (${name}): ${about}`).join('; '),
  extensions: formats.map(({ extensions: [first], name }) => `${first} (${name})`).join(', '),
  runtimes: [...runtimes, search].map(({ name }) => name).join(', '),
};
