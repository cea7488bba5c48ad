/** How code ends the machine that it runs on. */
export interface PowerOffModel {
  /**
   * Offsets of instructions behind which the code ends the machine, or has its firmware do so. These are guesses at
   * any byte: data may look alike.
   * @param ports I/O ports of the machine's own whose devices end it, where an architecture has ports
   */
  places(code: Uint8Array, ports: readonly number[]): readonly number[];
}
