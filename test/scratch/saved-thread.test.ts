// A thread whose registers a killed rsptrace had borrowed: they are found wherever on its stack the thread stands.
import t from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import type { Addr } from '../../src/base/addr.js';
import type { Session } from '../../src/rsp/index.js';
import { saveThread, takeBackThread } from '../../src/scratch/saved-thread.js';

const top = 0x7fff_ffff_f000n;
const stackBytes = 64 * 1024;

/** One thread with a stack of 64 KiB, above which nothing is mapped, and 8 bytes of registers: its stack pointer. */
class Thread {
  readonly #stack = Buffer.alloc(stackBytes);
  readonly #registers = Buffer.alloc(8);
  readonly session: Session;

  constructor(stackPointer: bigint) {
    this.stackPointer = stackPointer;
    const value = (): unknown => ({
      ...{ bytes: Buffer.from(this.#registers), complete: true },
      register: (name: string) => (name === x86_64.sp ? this.stackPointer : undefined),
    });
    const place = (address: Addr): number => Number(address - (top - BigInt(stackBytes)));
    const batch = {
      readRegisters: () => ({ value: value() }),
      writeRegisters: (hex: string) => {
        this.#registers.set(Buffer.from(hex, 'hex'));
        return { value: true };
      },
      send: async () => {},
    };
    const memory = {
      read: async (address: Addr, length: number) => {
        const at = place(address);
        return at < 0 || at + length > stackBytes ? undefined : Buffer.from(this.#stack.subarray(at, at + length));
      },
      write: async (address: Addr, bytes: Uint8Array) => {
        this.#stack.set(bytes, place(address));
        return true;
      },
    };
    const session: unknown = { batch: () => batch, memory: () => memory };
    this.session = session as Session;
  }

  get stackPointer(): bigint {
    return this.#registers.readBigUInt64LE();
  }

  set stackPointer(value: bigint) {
    this.#registers.writeBigUInt64LE(value);
  }
}

t.test('at any distance from the end of its stack, and with injected code further down', async (t) => {
  for (const fromTop of [8n, 0xa48n, 0xfffn, 0x1000n, 0x2008n, 0x7ff8n])
    for (const deeper of [0n, 0x1800n, 0x3000n]) {
      const own = top - fromTop;
      const thread = new Thread(own);
      t.ok(await saveThread(thread.session, 'p1.1', own));
      thread.stackPointer = own - deeper;
      const what = `${fromTop} bytes below the end, ${deeper} deeper`;
      t.equal(await takeBackThread(thread.session, x86_64, 'p1.1'), own, what);
      t.equal(thread.stackPointer, own, 'it has its own registers');
      t.equal(await takeBackThread(thread.session, x86_64, 'p1.1'), undefined, 'once');
    }
});
