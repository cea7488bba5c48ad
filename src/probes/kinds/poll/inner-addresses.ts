import { type Addr, addOffset, lowHalf } from '../../../base/addr.js';

interface InnerAddress {
  readonly self: Addr;
  readonly offset: number;
  readonly address: Addr;
}

const innerSlots = 1024;

/** Addresses inside Futures, each made once: the same ones come again and again, and bigint arithmetic is slow. */
class InnerAddresses {
  readonly #known: (InnerAddress | undefined)[] = new Array(innerSlots).fill(undefined);

  at(self: Addr, offset: number): Addr {
    const slot = (Math.imul(lowHalf(self), 0x0100_0193) ^ offset) & (innerSlots - 1);
    const known = this.#known[slot];
    if (known && known.offset === offset && known.self === self) return known.address;
    const address = addOffset(self, offset);
    this.#known[slot] = { self, offset, address };
    return address;
  }
}

export const innerAddresses = new InnerAddresses();
