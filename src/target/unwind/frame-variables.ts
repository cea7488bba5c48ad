import type { FutureSet, FutureType } from '../../async/futures/index.js';
import { type Addr, addr } from '../../base/addr.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import { type DebugInfo, type Die, DW_TAG } from '../../dwarf/index.js';
import { type FrameAccess, placeOf, type Value, Values, variablesAt } from '../../values/index.js';
import type { Frame } from './frame.js';

/** A variable of one frame: of its function, or of one that is inlined there. */
export interface FrameVariable {
  readonly name: string;
  readonly parameter: boolean;
  readonly value: Value;
}

/** Parameters and locals of frames, from the registers that the unwinder knows. */
export class FrameVariables {
  readonly #debug: DebugInfo;
  readonly #memory: MemoryReader;
  readonly #values: Values;

  constructor(debug: DebugInfo, memory: MemoryReader) {
    this.#debug = debug;
    this.#memory = memory;
    this.#values = new Values(debug, memory);
  }

  /** Innermost scope first; a shadowed name is left out. A value that was optimized out says so. */
  async of(frame: Frame): Promise<FrameVariable[]> {
    const access = accessOf(frame);
    const found: FrameVariable[] = [];
    const seen = new Set<string>();
    for (const { name, die, type, parameter, owner } of variablesAt(this.#debug, access.pc)) {
      const key = `${owner.offset}:${name}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const place = await placeIn(this.#debug, die, access, this.#memory);
      found.push({ name, parameter, value: await this.#values.read(type, place) });
    }
    return found;
  }
}

/** A Future whose poll is on a stack now. */
export interface RunningPoll {
  readonly future: FutureType;
  readonly address: Addr;
  readonly frame: Frame;
}

/**
 * The polls among these frames, innermost first, each with its Future's address. That address is the value of the
 * poll function's first parameter, `Pin<&mut Self>`. A poll is left out if the debug info no longer says where the
 * parameter is. Polls of pointers to Futures (`Pin<Box<F>>`) are left out too, because they only poll the Future
 * behind them.
 */
export async function runningPolls(
  frames: readonly Frame[],
  debug: DebugInfo,
  futures: FutureSet,
  memory: MemoryReader,
): Promise<RunningPoll[]> {
  const found: RunningPoll[] = [];
  for (const frame of frames) {
    const access = accessOf(frame);
    const fn = debug.functionAt(access.pc);
    const future = fn && futures.byPollAddress(fn.low);
    if (!future || isPointer.test(future.future)) continue;
    const [self] = [...fn.die.children()].filter((child) => child.tag === DW_TAG.formal_parameter);
    if (!self) continue;
    const place = await placeIn(debug, self, access, memory);
    const bytes = place && (await place.read(memory, 8));
    if (!(bytes instanceof Uint8Array)) continue;
    const address = new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);
    found.push({ future, address: addr(address), frame });
  }
  return found;
}

const isPointer = /^(core::pin::Pin|alloc::boxed::Box|&mut)\b/;

/** A location that is damaged, or computes what is not known here, costs the frame no other variable. */
async function placeIn(debug: DebugInfo, die: Die, access: FrameAccess, memory: MemoryReader) {
  return await placeOf({ die }, access, memory).catch((error: unknown) => debug.passOver(die.unit, error));
}

/** A frame as location expressions see it. In a caller the place is its call, not the address behind it. */
function accessOf(frame: Frame): FrameAccess {
  return {
    pc: frame.exact ? frame.pc : addr(frame.pc - 1n),
    register: (number) => frame.registers.numbered(number),
    cfa: async () => frame.cfa,
  };
}
