import type { Addr } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import type { StackWalk, WrappedWalk } from '../inject/process-code.js';
import { Assembler } from './assembler.js';
import { RAX, RCX, RDI, RSI, RSP } from './registers.js';

/** Bytes of stack that the wrapper takes: the callback, its argument, and 8 that align the stack for calls. */
const frame = 24;

/**
 * A wrapper of `_Unwind_Backtrace(callback, argument)` (LSB Core, libgcc_s). It calls that with a callback of its own,
 * which passes every frame on but those whose address is in trampolines. `open` counts the walks that have not ended.
 *
 *     rsp + 0: 8 bytes | 8: callback | 16: argument | 24: return address
 */
function code(at: Addr, { walk, addressOf, hidden, open }: WrappedWalk): ReturnType<StackWalk['code']> {
  const wrapper = new Assembler(at);
  const [filter, hides] = [new Label(), new Label()];
  wrapper.increment({ at: open });
  wrapper.push(RSI);
  wrapper.push(RDI);
  wrapper.moveStack(16 - frame);
  wrapper.address(RDI, { at: filter });
  wrapper.move(RSI, RSP);
  wrapper.load(RAX, wrapper.literal(walk));
  wrapper.callTo(RAX);
  const returns = wrapper.here;
  wrapper.moveStack(frame);
  wrapper.constant(RCX, -1n);
  wrapper.addAtOnce({ at: open }, RCX);
  wrapper.plain('ret');
  wrapper.bind(filter);
  const callback = wrapper.here;
  wrapper.push(RSI);
  wrapper.push(RDI);
  wrapper.moveStack(-8);
  wrapper.load(RAX, wrapper.literal(addressOf));
  wrapper.callTo(RAX);
  wrapper.moveStack(8);
  wrapper.pop(RDI);
  wrapper.pop(RSI);
  wrapper.arithmetic('sub', RAX, wrapper.literal(hidden.address));
  wrapper.arithmetic('cmp', RAX, { constant: BigInt(hidden.length) });
  wrapper.branch('b', hides);
  wrapper.load(RAX, { base: RSI, offset: 8 });
  wrapper.load(RSI, { base: RSI, offset: 16 });
  wrapper.jumpTo(RAX);
  wrapper.bind(hides);
  // _URC_NO_REASON: go on.
  wrapper.constant(RAX, 0n);
  wrapper.plain('ret');
  return { bytes: wrapper.finish(), returns, callback };
}

const nothing: WrappedWalk = {
  walk: 1n as Addr,
  addressOf: 2n as Addr,
  hidden: { address: 3n as Addr, length: 0 },
  open: 0n as Addr,
};

export const stackWalk: StackWalk = {
  bytes: code(0n as Addr, nothing).bytes.length,
  returns: { at: Number(code(0n as Addr, nothing).returns), offset: frame },
  callback: 'rdi',
  code,
};
