import { type FrameModel, type HookFrame, hookMarkBytes, markedHook } from '../../arch/index.js';
import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { CodeImages } from './code-image.js';
import type { StackWindow } from './stack-window.js';

/** As many bytes as code has that frees stack and returns; and as the longest call. */
const codeBytes = 24;
const callBytes = 8;
/** Return addresses that are remembered. */
const mostKnown = 0x1_0000;

/**
 * Finds the code that a tracer has left as what open calls return to, whoever that was and whenever. No call ends
 * before it. Code of a trampoline has a mark before it; other code frees the hook's frame and returns, also where it
 * is borrowed from the middle of the program's own.
 */
export class LeftCode {
  readonly #model: FrameModel;
  readonly #images: CodeImages;
  readonly #known = new Map<bigint, HookFrame | undefined>();

  constructor(model: FrameModel, images: CodeImages) {
    this.#model = model;
    this.#images = images;
  }

  /** Undefined for a return address that a call has made, or if memory is {@link StackWindow.missing}. */
  at(returnAddress: bigint, window: StackWindow): HookFrame | undefined {
    const known = this.#known.get(returnAddress);
    if (known !== undefined || this.#known.has(returnAddress)) return known;
    const at = addr(returnAddress);
    let found: HookFrame | undefined;
    if (!this.isBehindCall(at)) {
      const code = bytesOf(window, at, codeBytes);
      const isRead = code !== undefined || window.missing === undefined;
      const mark = isRead ? bytesOf(window, addOffset(at, -hookMarkBytes), hookMarkBytes) : undefined;
      if (code === undefined || window.missing !== undefined) return undefined;
      // In memory, too: of code that no ELF here has, and of calls that are patched in.
      const isCalled =
        mark !== undefined && this.#model.code?.endsInCall({ start: addOffset(at, -hookMarkBytes), bytes: mark });
      found =
        (mark && markedHook(mark)) ??
        (isCalled ? undefined : this.#model.code?.shortReturn({ start: at, bytes: code }));
    }
    if (this.#known.size >= mostKnown) this.#known.clear();
    this.#known.set(returnAddress, found);
    return found;
  }

  /** In the ELF: few programs change their calls while they run. */
  isBehindCall(at: Addr): boolean {
    const elf = this.#images.at(at, 1)?.elf;
    // Fewer bytes where a segment begins just before.
    for (let length = callBytes; elf !== undefined && length > 0; length--) {
      const start = addOffset(at, -length);
      const bytes = elf.bytesAt(start, length);
      if (bytes !== undefined) return this.#model.code?.endsInCall({ start, bytes }) ?? true;
    }
    return false;
  }
}

function bytesOf(window: StackWindow, at: Addr, length: number): Uint8Array | undefined {
  const view = new DataView(new ArrayBuffer(length));
  for (let done = 0; done < length; done += 8) {
    const word = window.word(at, done);
    if (word === undefined) return undefined;
    view.setBigUint64(done, word, true);
  }
  return new Uint8Array(view.buffer);
}
