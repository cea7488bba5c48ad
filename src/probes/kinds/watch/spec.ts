import { type Addr, addr } from '../../../base/addr.js';
import { RsptraceError } from '../../../base/errors.js';
import type { WatchAccess } from '../../../trace/index.js';
import { type MemberExpr, parseMemberExpr } from '../../../values/index.js';
import type { AnyProbe } from '../kind.js';

/** One `--probe watch:...`: a place in memory whose accesses are traced. */
export interface WatchSpec extends AnyProbe {
  /** The place as it was written: `labkern::exec::POLLS`, `0x80001000,8`. */
  readonly name: string;
  readonly access: WatchAccess;
  readonly place: WatchedPlace;
}

/** An expression is evaluated when the target is known. An address is used as it is, and holds an unsigned number. */
type WatchedPlace =
  | { readonly kind: 'expression'; readonly expression: MemberExpr }
  | { readonly kind: 'address'; readonly address: Addr; readonly size: number };

/** What one watchpoint can cover, in bytes. */
export const watchSizes: readonly number[] = [1, 2, 4, 8];

/**
 * Parses the text behind `watch:`, `EXPR[:r|w|rw]` or `ADDRESS,SIZE[:r|w|rw]`. The `::` of a path does not begin an
 * access.
 * @throws RsptraceError `PROBE_SYNTAX`, `EXPRESSION_SYNTAX`, `WATCH_SIZE`
 */
export function parseWatch(text: string, rest: string): WatchSpec {
  const whole = rest.trim();
  const found = /^(.*[^:\s])\s*:\s*(r|w|rw)$/s.exec(whole);
  const name = found?.[1] ?? whole;
  if (name === '') {
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' names nothing after the colon`, {
      hint: "write --probe 'watch:crate::module::STATIC', or an address and a size: 'watch:0x80001000,8'",
    });
  }
  const ending = found ? undefined : /[^:\s]\s*:\s*(\w*)$/.exec(whole)?.[1];
  if (ending !== undefined) {
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' ends with ':${ending}', which is no kind of access`, {
      hint: 'end it with :r|w|rw, that is :r for reads, :w for writes (as without any), :rw for both',
    });
  }
  const access = (found?.[2] ?? 'w') as WatchAccess;
  return { kind: 'watch', text, name, access, place: placeOf(text, name) };
}

function placeOf(text: string, name: string): WatchedPlace {
  const plain = /^(0x[0-9a-f_]+|[0-9][0-9_]*)\s*,\s*([0-9]{1,9})$/i.exec(name);
  const digits = plain?.[1]?.replaceAll('_', '');
  if (!plain || digits === undefined || /^0x$/i.test(digits)) {
    return { kind: 'expression', expression: parseMemberExpr(name) };
  }
  const address = digits.length > 24 ? 1n << 64n : BigInt(digits);
  if (address >= 1n << 64n) throw new RsptraceError('PROBE_SYNTAX', `'${text}': the address has more than 64 bits`);
  const size = Number(plain[2]);
  if (!watchSizes.includes(size)) throw wrongSize(name, size);
  return { kind: 'address', address: addr(address), size };
}

export function wrongSize(name: string, size: number | undefined, members: readonly string[] = []): RsptraceError {
  const some = members.slice(0, 8).join(', ');
  const has = size === undefined ? 'has no known size' : `has ${size} bytes`;
  return new RsptraceError('WATCH_SIZE', `${name} ${has}: a watchpoint covers 1, 2, 4 or 8`, {
    hint: members.length > 0 ? `watch one of its members: ${some}` : 'watch a part of it, or ADDRESS,SIZE',
  });
}
