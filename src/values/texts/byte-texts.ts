import { textText } from '../print.js';

/** Texts that are kept, one per hash. */
const slots = 256;
/** Longer texts are not kept. */
const longest = 64;

interface Kept {
  readonly bytes: Uint8Array;
  readonly cut: boolean;
  readonly text: string;
}

const utf8 = new TextDecoder('utf-8');
const kept: (Kept | undefined)[] = new Array(slots).fill(undefined);

/** UTF-8 as Rust's Debug writes it. The same names come again and again, so the newest are kept. */
export function byteText(data: Uint8Array, at: number, length: number, cut: boolean): string {
  if (length > longest) return textText(utf8.decode(data.subarray(at, at + length)), cut);
  let hash = length;
  for (let i = at; i < at + length; i++) hash = Math.imul(hash ^ (data[i] as number), 0x0100_0193);
  const slot = (hash ^ (hash >>> 15)) & (slots - 1);
  const known = kept[slot];
  if (known !== undefined && known.cut === cut && isSame(known.bytes, data, at, length)) return known.text;
  const bytes = data.slice(at, at + length);
  const text = textText(utf8.decode(bytes), cut);
  kept[slot] = { bytes, cut, text };
  return text;
}

function isSame(known: Uint8Array, data: Uint8Array, at: number, length: number): boolean {
  if (known.length !== length) return false;
  for (let i = 0; i < length; i++) if (known[i] !== data[at + i]) return false;
  return true;
}
