// A thread whose registers a killed rsptrace had borrowed: they are found wherever on its stack the thread stands, or on which other one.
import t from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import { type Addr, addr } from '../../src/base/addr.js';
import type { Session } from '../../src/rsp/index.js';
import { leadToThread, saveThread, takeBackThread } from '../../src/scratch/saved-thread.js';
import { SystemCalls } from '../../src/scratch/system-calls.js';

const top = 0x7fff_ffff_f000n;
const stackBytes = 64 * 1024;

const names = ['rsp', 'rip', 'rax', 'rdi', 'rsi', 'rdx', 'r10', 'cs', 'orig_rax'];

/** A thread in 64-bit code, with a stack of 64 KiB, above which nothing is mapped, and a page with `syscall` in it. */
class Thread {
  readonly #stack = Buffer.alloc(stackBytes, 0xa5);
  /** Those of `names`. */
  readonly registers = new BigUint64Array(names.length).map((_, i) => (names[i] === 'cs' ? 0x33n : BigInt(i)));
  readonly session: Session;

  constructor(stackPointer: bigint) {
    this.stackPointer = stackPointer;
    const value = (): unknown => {
      const now = this.registers.slice();
      return { bytes: Buffer.from(now.buffer), complete: true, register: (name: string) => now[names.indexOf(name)] };
    };
    const place = (address: Addr): number => Number(address - (top - BigInt(stackBytes)));
    const batch = {
      readRegisters: () => ({ value: value() }),
      writeRegister: (name: string, to: bigint) => {
        if (names.includes(name)) this.registers[names.indexOf(name)] = to;
        return { value: true };
      },
      writeRegisters: (hex: string) => {
        new Uint8Array(this.registers.buffer).set(Buffer.from(hex, 'hex'));
        return { value: true };
      },
      send: async () => {},
    };
    const memory = {
      read: async (address: Addr, length: number) => {
        if (address === 0x1000n) return Buffer.alloc(length).fill('0f05', 0, 2, 'hex');
        const at = place(address);
        return at < 0 || at + length > stackBytes ? undefined : Buffer.from(this.#stack.subarray(at, at + length));
      },
      write: async (address: Addr, bytes: Uint8Array) => {
        this.#stack.set(bytes, place(address));
        return true;
      },
    };
    const files = { status: 'SigBlk:\tfffffffffffffeff\nSeccomp:\t0\n', maps: '1000-2000 r-xp 00000000 00:00 0\n' };
    const session: unknown = {
      ...{ batch: () => batch, memory: () => memory, stub: async () => ({}), object: async () => undefined },
      target: { register: () => ({ offsetInG: 0 }) },
      remoteFile: async (path: string) => Buffer.from(files[path.split('/').at(-1) as keyof typeof files]),
      state: { kind: 'idle', stop: { kind: 'signal', hart: 'p1.1' } },
      resume: async () => ({ kind: 'signal', signal: 5, hart: 'p1.2' }),
    };
    this.session = session as Session;
  }

  get isUntouched(): boolean {
    return this.#stack.every((byte) => byte === 0xa5);
  }

  get stackPointer(): bigint {
    return this.registers[0] as bigint;
  }

  set stackPointer(value: bigint) {
    this.registers[0] = value;
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

t.test('where the call fails that gives it its signals back, it has its own registers all the same', async (t) => {
  const thread = new Thread(top - 0x2008n);
  const own = thread.registers.slice();
  t.ok(await saveThread(thread.session, 'p1.1', thread.stackPointer));
  // Another thread stops first.
  await t.rejects(SystemCalls.takeBack(thread.session, x86_64, 'p1.1'), { code: 'SCRATCH_UNAVAILABLE' });
  t.strictSame([...thread.registers], [...own]);
});

t.test('what lies below its stack is put back', async (t) => {
  const thread = new Thread(top - 0xa48n);
  const putBack = await saveThread(thread.session, 'p1.1', thread.stackPointer);
  t.notOk(thread.isUntouched);
  await putBack?.();
  t.ok(thread.isUntouched);
  t.equal(await takeBackThread(thread.session, x86_64, 'p1.1'), undefined);
});

t.test('with injected code on a stack of ours, as deep as that may be', async (t) => {
  const own = top - 0x8a48n;
  for (const deep of [0n, 0x48n, 0x6000n]) {
    const thread = new Thread(own);
    t.ok(await saveThread(thread.session, 'p1.1', own));
    const start = (await leadToThread(thread.session, 'p1.1', addr(top - 0x1000n), own)) ?? 0n;
    thread.stackPointer = start - deep;
    t.equal(await takeBackThread(thread.session, x86_64, 'p1.1'), own, `${deep} bytes deep`);
    t.equal(thread.stackPointer, own, 'it has its own registers');
  }
});
