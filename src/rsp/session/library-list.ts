/*
 * GDB manual, "Library List Format for SVR4 Targets": what the dynamic loader has loaded. The object of qXfer is
 * `libraries-svr4`.
 *
 *   <library-list-svr4 version="1.0" main-lm="0x...">
 *     <library name="PATH" lm="0x..." l_addr="0x..." l_ld="0x..."/> ...
 *
 * At most 16,384 libraries are kept.
 */

import { type Addr, addr } from '../../base/addr.js';
import { readXml } from './xml.js';

export interface ListedLibrary {
  /** A path on the target's machine. */
  readonly name: string;
  /** How far from its own addresses it was loaded. */
  readonly bias: Addr;
}

const MOST = 16_384;

/** The libraries of a list, without those that have no name. Throws `RSP_BAD_XML`. */
export function parseLibraryList(text: string): ListedLibrary[] {
  const found: ListedLibrary[] = [];
  readXml(text, 'list of libraries', {
    open: ({ name, attributes }) => {
      const [path, bias] = [attributes.get('name'), attributes.get('l_addr')];
      if (name !== 'library' || !path || !bias || !/^0x[0-9a-f]{1,16}$/i.test(bias) || found.length >= MOST) return;
      found.push({ name: path, bias: addr(BigInt(bias)) });
    },
  });
  return found;
}
