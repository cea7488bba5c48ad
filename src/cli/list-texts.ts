import { runtimes, search } from '../async/tasks/index.js';
import { kinds } from '../probes/index.js';
import { formats } from '../trace/index.js';

/**
 * What help says of the lists that plug-ins can extend, in the place of `{probes}`, `{formats}` ... It takes half of the
 * program, so only what describes the options loads it: help, completion, `mcp` and the schema of settings.
 * `'poll:GLOB' traces these Futures, ...`; `.pftrace (Perfetto): timelines of harts, ...`; `tokio, embassy, ...`.
 */
export const listTexts = {
  probes: kinds.map(({ help }) => help).join(', '),
  formats: formats.map(({ extensions, name, about }) => `${extensions[0]} (${name}): ${about}`).join('; '),
  extensions: formats.map(({ extensions: [first], name }) => `${first} (${name})`).join(', '),
  runtimes: [...runtimes, search].map(({ name }) => name).join(', '),
};

export type ListTexts = typeof listTexts;
