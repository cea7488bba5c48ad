/*
 * GDB manual, "File-I/O Remote Protocol Extension". A target may print through the debugger (semihosting): write to
 * descriptors 1 and 2 is supported. Everything else, files above all, is refused with ENOSYS; nothing of the host is
 * ever opened.
 */

import { addr } from '../../base/addr.js';
import { protocolError } from '../wire/framing.js';
import type { Link } from '../wire/link.js';
import { packets } from './packets.js';
import { MemoryRequest } from './request.js';

const ENOSYS = 88;
const EFAULT = 14;
const EINTR = 4;
/** What one write may print, in one packet. */
const LONGEST_WRITE = 64;

const CALL = /^F(open|close|read|write|lseek|rename|unlink|stat|fstat|gettimeofday|isatty|system),/;
const WRITE = /^Fwrite,([12]),([0-9a-fA-F]{1,16}),([0-9a-fA-F]{1,8})$/;

/** Answers a request of the running target, which then continues. */
export function answerFileIo(
  text: string,
  link: Link,
  interrupting: boolean,
  print: (output: Uint8Array) => void,
): void {
  if (!CALL.test(text)) throw protocolError(`it asks for "${text.slice(0, 40)}"`);
  const reply = (packet: string): void => link.send([], () => {}, packet);
  const write = WRITE.exec(text);
  if (interrupting) {
    reply(packets.fileIo(-1, EINTR, true));
  } else if (write === null) {
    reply(packets.fileIo(-1, ENOSYS));
  } else {
    // A short write is allowed: the target writes the rest again.
    const length = Math.min(Number.parseInt(write[3] as string, 16), LONGEST_WRITE);
    const output = new Uint8Array(length);
    const request = new MemoryRequest(packets.readMemory(addr(BigInt(`0x${write[2]}`)), length), output, 0, length);
    link.send([request], (error) => {
      if (error !== undefined) return;
      if (request.value > 0) print(output.subarray(0, request.value));
      reply(request.value > 0 ? packets.fileIo(request.value) : packets.fileIo(-1, EFAULT));
    });
  }
}
