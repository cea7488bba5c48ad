import { Buffer } from 'node:buffer';

/** The most bytes that may wait for a reader of stderr that is slower than the target prints. */
const mostWaiting = 1024 * 1024;

let collected: Uint8Array[] = [];
let left = 0;

/**
 * Shows on stderr what the target prints through its stub: each read in one write. If the reader is slower than the
 * target prints, output is left out, and its amount is reported, because the target may print without end.
 */
export function showConsole(text: Uint8Array): void {
  if (collected.length === 0) queueMicrotask(flush);
  collected.push(text);
}

function flush(): void {
  const text = Buffer.concat(collected);
  collected = [];
  if (process.stderr.writableLength > mostWaiting) {
    left += text.length;
    return;
  }
  if (left > 0) process.stderr.write(`\n[${left} bytes that the target printed are left out]\n`);
  left = 0;
  process.stderr.write(text);
}
