import type { RsptraceError } from '../../base/errors.js';

/** What comes without being the answer to a request. */
export interface LinkEvents {
  /** A stop reply, a file-I/O request, or what has no business to come. */
  event(text: string): void;
  console(text: Uint8Array): void;
  /** The answers were lost while the target runs: it has to be stopped before anything can be asked again. */
  adrift(error: RsptraceError): void;
  /**
   * Once: the link is dead. No `error`: one of the two sides has closed it. `owed`: why requests were never answered.
   */
  closed(error: RsptraceError | undefined, owed: RsptraceError | undefined): void;
}
