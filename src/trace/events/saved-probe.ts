import { addr, hex } from '../../base/addr.js';
import { among, optional, type Read, shaped, text, word } from '../../base/json-shape.js';
import type { ProbeFact } from './facts.js';

/** A fact of a probe as JSON has it: with its address as text. */
export type SavedProbe = Omit<ProbeFact, 'address'> & { readonly address: string };

export const savedProbe: Read<SavedProbe> = shaped<SavedProbe>({
  ...{ name: text, subject: optional(text), address: word, engine: among('target', 'stop', 'none') },
  ...{ why: optional(text), leftOutBy: optional(among('stops', 'stub', 'number', 'harm')), proof: optional(text) },
  ...{ partly: optional(text), unseenReturn: optional(text), extra: optional(text) },
});

export function probeJson(probe: ProbeFact): SavedProbe {
  return { ...probe, address: hex(probe.address) };
}

export function probeFrom(saved: SavedProbe): ProbeFact {
  return { ...saved, address: addr(BigInt(saved.address)) };
}
