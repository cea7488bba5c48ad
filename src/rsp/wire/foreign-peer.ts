import { RsptraceError } from '../../base/errors.js';

/** How many bytes outside packets are tolerated after the last packet, and before the first. */
const MOST_JUNK = 4096;
const MOST_JUNK_AT_FIRST = 16;

const CHECK_PORT = 'Check the port: it is the one after -gdb or --port of the stub';
const ANOTHER_DEBUGGER =
  'Another debugger may hold this stub, which serves one at a time; or what listens there is no GDB stub';

/** Collects what the other side sends outside packets, and says what it is if it does not speak RSP. */
export class ForeignPeer {
  /** The address. */
  readonly name: string;
  #text = '';
  #count = 0;
  #known = false;

  constructor(name: string) {
    this.name = name;
  }

  /** A packet or an acknowledgement has come: it speaks the protocol. */
  speaksRsp(): void {
    this.#known = true;
    this.#count = 0;
  }

  /** Takes `count` bytes that begin with `text`; the error once they are too many. */
  hear(text: string, count: number): RsptraceError | undefined {
    this.#count += count;
    if (this.#text.length < 80) this.#text += text;
    return this.#count > (this.#known ? MOST_JUNK : MOST_JUNK_AT_FIRST) ? this.#noStub() : undefined;
  }

  /**
   * Bytes that make a server which waits for the end of a line identify itself; none if something is known about it.
   */
  knock(): readonly number[] {
    return this.#known || this.#text !== '' ? [] : [0x0d, 0x0a, 0x0d, 0x0a];
  }

  /** The meaning of a timeout without any byte; undefined if something had come before. */
  silent(): RsptraceError | undefined {
    if (this.#known) return undefined;
    if (this.#text !== '') return this.#noStub();
    return new RsptraceError('RSP_TIMEOUT', `${this.name} takes the connection and says nothing`, {
      hint: ANOTHER_DEBUGGER,
    });
  }

  /** The meaning of a closed connection; undefined if something had come before. */
  closed(): RsptraceError | undefined {
    if (this.#known) return undefined;
    if (this.#text !== '') return this.#noStub();
    return new RsptraceError('RSP_CLOSED', `${this.name} closes the connection without a word`, {
      hint: ANOTHER_DEBUGGER,
    });
  }

  /** The error of whoever asks after the end. */
  ended(): RsptraceError {
    return new RsptraceError('RSP_CLOSED', `The connection to ${this.name} is closed`);
  }

  #noStub(): RsptraceError {
    if (/HTTP\/1|<!DOCTYPE html/i.test(this.#text)) {
      return new RsptraceError('RSP_PROTOCOL', `What listens at ${this.name} is a web server, not a GDB stub`, {
        hint: CHECK_PORT,
      });
    }
    const line = this.#text.split(/[\r\n]/).find((each) => each !== '') ?? '';
    const said = line.slice(0, 60).replace(/[^\x20-\x7e]/g, '?');
    return new RsptraceError(
      'RSP_PROTOCOL',
      `What listens at ${this.name} does not speak the GDB protocol; it says "${said}"`,
      { hint: CHECK_PORT },
    );
  }
}
