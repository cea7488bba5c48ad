import type { CodeReferences } from '../code-references.js';
import { placed } from './flow.js';
import { RA } from './registers.js';

/**
 * LoongArch code is scanned word by word, data between it too.
 *
 *     b, bl, beq, beqz, bceqz            a distance
 *     pcaddu18i, pcaddu12i and jirl      a distance in two parts, the upper one kept by its register
 *     pcaddu12i, pcalau12i and addi.d    an address in two parts
 */
export const references: CodeReferences = {
  scan(code, { at, leads, names }) {
    for (const { target, names: named } of placed(code, at % 4096)) {
      if (target !== undefined) leads(at + target);
      if (named !== undefined) names(at + named);
    }
  },
  leave(code, at) {
    const out = placed(code, at % 4096).filter(
      ({ target }) => target !== undefined && (target < 0 || target >= code.length),
    );
    const leading = (isCall: boolean): number[] =>
      out.flatMap(({ instruction, target = 0 }) => {
        const links =
          instruction.form === 'jump'
            ? instruction.link
            : instruction.form === 'jump-register' && instruction.rd === RA;
        return links === isCall ? [at + target] : [];
      });
    return { jumps: leading(false), calls: leading(true), jumpsThrough: [], callsThrough: [] };
  },
};
