import { addr } from '../../base/addr.js';
import type { ResetModel } from '../reset.js';

const vector = addr(0xffff_fff0);
const ip = addr(0xfff0);

/**
 * ffff:fff0, with cs's base at ffff0000 (Intel SDM volume 3, 10.1.4). The other processors are there too, and wait.
 * SeaBIOS resets the machine when it finds its own marks of an earlier run (src/resume.c).
 */
export const reset: ResetModel = {
  vectorAt(pc) {
    if (pc !== ip && pc !== vector) return undefined;
    return { breakpoint: { type: 1, address: vector, kind: 1 }, pc: ip, isCertain: false };
  },
  mode: { register: 'cs', value: 0xf000n },
  begins: 'first',
  firmwareResets: true,
};
