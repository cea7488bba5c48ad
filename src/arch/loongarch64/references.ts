import { type CodeReferences, leavingBy } from '../code-references.js';
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
    const targets = placed(code, at % 4096).flatMap(({ instruction: one, target }) => {
      const link = one.form === 'jump' ? one.link : one.form === 'jump-register' && one.rd === RA;
      return target === undefined ? [] : [{ to: target, link }];
    });
    return leavingBy(targets, code, at);
  },
};
