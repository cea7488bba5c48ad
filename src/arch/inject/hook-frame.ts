import { someBytes } from '../../base/memory-reader.js';

/** What a tracer has inserted between a frame and its caller by replacing a return address. */
export interface HookFrame {
  /** Where the original return address lies, in bytes from the stack pointer after the frame's own return. */
  readonly offset: number;
  /** Bytes of stack that are freed before the caller goes on. */
  readonly size: number;
}

/**
 * The mark before code that calls return to: `rsphook:`, then offset and size of the hook frame, 32 bits each. By it
 * a later command finds the caller, whoever has left that code.
 */
export const hookMarkBytes = 16;
const text = new TextEncoder().encode('rsphook:');

export function hookMark({ offset, size }: HookFrame): Uint8Array {
  const bytes = someBytes(hookMarkBytes);
  bytes.set(text);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setUint32(text.length, offset, true);
  view.setUint32(text.length + 4, size, true);
  return bytes;
}

/** The hook frame that a mark names; undefined for other bytes. */
export function markedHook(bytes: Uint8Array): HookFrame | undefined {
  if (bytes.length < hookMarkBytes || !text.every((byte, i) => bytes[i] === byte)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [offset, size] = [view.getUint32(text.length, true), view.getUint32(text.length + 4, true)];
  return offset < size && size <= mostFreed ? { offset, size } : undefined;
}

/** A hook frame keeps a few words. */
const mostFreed = 1024;
