import type { Addr } from '../../base/addr.js';
import type { PacketWriter } from '../wire/framing.js';
import type { HartBlock } from './hart-requests.js';
import { packets } from './packets.js';
import type { RegisterBlock } from './registers.js';
import { OkRequest } from './request.js';
import type { RunControl } from './run-control.js';
import type { RegisterDescription } from './target-description.js';

/**
 * A breakpoint or watchpoint as Z and z packets name it. Type 0 is software, 1 hardware: `kind` is as the architecture
 * defines it. Type 2 stops at writes, 3 at reads, 4 at both: `kind` is the number of bytes.
 */
export interface Breakpoint {
  readonly type: 0 | 1 | 2 | 3 | 4;
  readonly address: Addr;
  readonly kind: number;
}

export function breakpointKey(breakpoint: Breakpoint): string {
  return `${breakpoint.type}:${breakpoint.address.toString(16)}`;
}

/** Z or z; keeps the list of inserted breakpoints in line with the answers. */
export class BreakpointRequest extends OkRequest {
  readonly #breakpoint: Breakpoint;
  readonly #inserted: Map<string, Breakpoint>;
  readonly #what: 'insert' | 'remove';

  constructor(breakpoint: Breakpoint, inserted: Map<string, Breakpoint>, what: 'insert' | 'remove') {
    const { type, address, kind } = breakpoint;
    super(packets[`${what}Breakpoint`](type, address, kind));
    this.#breakpoint = breakpoint;
    this.#inserted = inserted;
    this.#what = what;
  }

  override accept(bytes: Uint8Array, start: number, end: number): boolean {
    super.accept(bytes, start, end);
    if (this.value) {
      if (this.#what === 'insert') this.#inserted.set(breakpointKey(this.#breakpoint), this.#breakpoint);
      else this.#inserted.delete(breakpointKey(this.#breakpoint));
    }
    return true;
  }

  /** It may be inserted, whatever the answer seemed to be. */
  override lost(): void {
    this.#inserted.set(breakpointKey(this.#breakpoint), this.#breakpoint);
  }
}

const LETTER_G = 0x47;

/** G with everything that is changed until the batch is sent. */
export class WriteBlockRequest extends OkRequest {
  readonly #control: RunControl;
  readonly #last: HartBlock;
  readonly #values: ReadonlyMap<RegisterDescription, bigint>;
  #sent: RegisterBlock | undefined;

  constructor(control: RunControl, last: HartBlock, values: ReadonlyMap<RegisterDescription, bigint>) {
    super('');
    this.#control = control;
    this.#last = last;
    this.#values = values;
  }

  override get packet(): string {
    return packets.writeRegisters(this.#last.block.changed(this.#values).hex);
  }

  override write(writer: PacketWriter): void {
    const block = this.#last.block.changed(this.#values);
    this.#sent = block;
    if (block.complete) writer.hexPacket(LETTER_G, block.bytes);
    else writer.packet(packets.writeRegisters(block.hex));
  }

  override accept(bytes: Uint8Array, start: number, end: number): boolean {
    super.accept(bytes, start, end);
    // Another hart may have been read since.
    if (this.value && this.#sent !== undefined)
      this.#control.requests.lastBlock = { hart: this.#last.hart, block: this.#sent };
    return true;
  }
}
