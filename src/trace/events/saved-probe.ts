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

/** In one order, so that a trace that is read and written again has the same bytes. */
export function probeJson(probe: ProbeFact): SavedProbe {
  const { name, subject, engine, why, leftOutBy, proof, partly, unseenReturn, extra } = probe;
  return { name, subject, address: hex(probe.address), engine, why, leftOutBy, proof, partly, unseenReturn, extra };
}

export function probeFrom(saved: SavedProbe): ProbeFact {
  return { ...saved, address: addr(BigInt(saved.address)) };
}
