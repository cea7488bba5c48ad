import type { Region } from '../async/tasks/index.js';
import { type Addr, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';

/** The value of `--scan`. Throws `USAGE`. */
export function parseRegion(text: string): Region {
  const [start, size, ...rest] = text.split(',');
  const length = Number(size);
  if (start === undefined || rest.length > 0 || !Number.isSafeInteger(length) || length <= 0) {
    throw new RsptraceError('USAGE', `'${text}' is not START,SIZE`, { hint: 'write --scan 0x80400000,0x100000' });
  }
  return { start: parseAddress(start, '--scan'), length };
}

/** Throws `USAGE`. */
export function parseAddress(text: string, option: string): Addr {
  if (!/^(0x[0-9a-f]{1,16}|\d{1,19})$/i.test(text)) {
    throw new RsptraceError('USAGE', `${option} takes an address, not '${text}'`, { hint: 'write 0x80000000' });
  }
  return addr(BigInt(text));
}
