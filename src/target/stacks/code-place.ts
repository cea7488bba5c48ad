import { isLibraryFile } from '../../text/index.js';
import type { Frame, SourceFrame, SourceFrames } from '../unwind/index.js';

/** Where a stack stands, in as few words as say it. */
export interface CodePlace {
  /** What the program's own code has called; without any of that on the stack, the innermost function. */
  readonly inside: string | undefined;
  /** The innermost function of the program's own files. */
  readonly own: SourceFrame | undefined;
}

/** It says only that some system call is made. */
const ANY_CALL = 'syscall';

export function codePlace(frames: readonly Frame[], sources: SourceFrames): CodePlace {
  let innermost: string | undefined;
  let last: string | undefined;
  for (const frame of frames) {
    for (const source of sources.of(frame)) {
      const { function: name, file } = source;
      if (!frame.image?.isLibrary && file !== undefined && !isLibraryFile(file)) return { inside: last, own: source };
      if (name === undefined) continue;
      last = publicName(name);
      if (innermost === undefined || innermost === ANY_CALL) innermost = last;
    }
  }
  return { inside: innermost, own: undefined };
}

/**
 * Modules of the standard library are mostly private below its second level: `std::sync::poison::mutex::Mutex::lock` is
 * known as `std::sync::Mutex::lock`.
 */
function publicName(name: string): string {
  const parts = name.replace(/^<([^<> ]*)>(?=::)/, '$1').split('::');
  if (parts[0] !== 'std' || parts.length < 4 || name.includes(' as ')) return parts.join('::');
  const type = parts.findIndex((part) => /^[A-Z]/.test(part));
  return [...parts.slice(0, 2), ...parts.slice(type < 2 ? -1 : type)].join('::');
}
