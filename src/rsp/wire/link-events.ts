import type { RsptraceError } from '../../base/errors.js';

/** Data that is not the answer to a request. */
export interface LinkEvents {
  /** A stop reply, a file-I/O request, or a packet that should not come. */
  event(text: string): void;
  console(text: Uint8Array): void;
  /** The answers were lost while the target runs: it must be stopped before any request is possible. */
  adrift(error: RsptraceError): void;
  /**
   * Called once: the link is dead. No `error`: one of the two sides has closed it. `owed`: why requests were never
   * answered.
   */
  closed(error: RsptraceError | undefined, owed: RsptraceError | undefined): void;
}
