import { ftruncateSync, writeSync } from 'node:fs';
import type { OpenedFile } from '../../../base/locked-file.js';

/** The end of an open file, where it grows. */
export class FileEnd {
  readonly file: OpenedFile;
  /** Bytes written. */
  position = 0;
  /** What was written last can be replaced. */
  isRegular = false;

  constructor(file: OpenedFile) {
    this.file = file;
  }

  /** After an error the position is behind what was written. */
  append(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) {
      const at = this.isRegular ? this.position : null;
      const written = writeSync(this.file.fd, bytes, done, bytes.length - done, at);
      done += written;
      this.position += written;
    }
  }

  cutTo(position: number): void {
    ftruncateSync(this.file.fd, position);
    this.position = position;
  }
}
