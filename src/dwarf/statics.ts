import type { Addr } from '../base/addr.js';
import { type CodeAddress, NO_ADDRESS } from '../elf/index.js';
import { DW_AT } from './constants.js';
import type { Die } from './die.js';
import { evaluate } from './expr.js';

/** Where a static variable lies; undefined for one in registers, in thread-local storage, or without a place. */
export function staticAddress(variable: Die): Addr | undefined {
  const expression = variable.block(DW_AT.location);
  const found = expression && evaluate(expression, variable.unit, () => undefined);
  const location = found !== undefined && 'pieces' in found ? found.pieces[0]?.location : undefined;
  return location?.kind === 'memory' ? location.address : undefined;
}

/** The same as a code address; `NO_ADDRESS` without one. */
export function staticCode(variable: Die): CodeAddress {
  const address = staticAddress(variable);
  return address === undefined ? NO_ADDRESS : variable.unit.codes.toCode(address);
}
