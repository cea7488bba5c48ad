// Stacks of loongarch64, which no debugger here knows: a guest is stepped instruction by instruction, and what its calls and returns
// have left open is what every unwinder must find.
import t from 'tap';
import { type Architecture, loongarch64 } from '../../../src/arch/index.js';
import { type Addr, addr, hex } from '../../../src/base/addr.js';
import { ElfFile } from '../../../src/elf/index.js';
import { Stacks, StackWindow } from '../../../src/target/unwind/index.js';
import { readPacket, StubChild } from '../../arch/stub-child.js';
import { elfPath } from '../../qemu/guests/guests.js';
import { long, usually } from '../../support/long.js';

const machine = '-M virt -m 1G -icount shift=0 -display none -serial none -monitor none -S -gdb stdio -kernel'.split(
  ' ',
);
/** In QEMU's `g`. */
const order = [...loongarch64.generalRegisters, 'orig_a0', 'pc'];
const ret = '2000004c';
const ertn = '00384806';

/** bl, and jirl that links in ra. */
function isCall(code: string): boolean {
  const word = Buffer.from(code, 'hex').readUInt32LE();
  return word >>> 26 === 0x15 || (word >>> 26 === 0x13 && (word & 31) === 1);
}

interface Standing {
  readonly pc: Addr;
  /** The instruction, in hexadecimal. */
  readonly code: string;
  readonly registers: ReadonlyMap<string, bigint>;
  readonly window: StackWindow;
}

class Stepped implements AsyncDisposable {
  readonly #stub: StubChild;
  readonly #top: bigint;

  private constructor(stub: StubChild, top: bigint) {
    this.#stub = stub;
    this.#top = top;
  }

  /** Stands where a function is entered for this many times. */
  static async at(elf: ElfFile, path: string, place: Addr, times: number): Promise<Stepped> {
    const stub = await StubChild.start('qemu-system-loongarch64', [...machine, path]);
    const [insert, remove] = ['Z', 'z'].map((letter) => `${letter}0,${place.toString(16)},4`) as [string, string];
    await stub.exchange(['?']);
    for (let left = times; left > 0; left--) {
      await stub.exchange([insert]);
      await stub.exchange(['vCont;c']);
      await stub.exchange([remove]);
      if (left > 1) await stub.exchange(['vCont;s']);
    }
    return new Stepped(stub, addressOf(elf, /^__stack_top$/));
  }

  async step(): Promise<void> {
    await this.#stub.exchange(['vCont;s']);
  }

  async look(): Promise<Standing> {
    const [all = ''] = await this.#stub.exchange(['g']);
    const words = order.map((_, index) => Buffer.from(all.slice(16 * index, 16 * index + 16), 'hex').readBigUInt64LE());
    const registers = new Map(order.map((name, index) => [name, words[index] as bigint]));
    const [pc, sp] = [addr(registers.get('pc') ?? 0n), registers.get('r3') ?? 0n];
    const parts: [bigint, number][] = [];
    for (let at = sp; at < this.#top; at += 2000n) parts.push([at, Math.min(2000, Number(this.#top - at))]);
    const [code = '', ...stack] = await this.#stub.exchange([
      readPacket(pc, 4),
      ...parts.map((part) => readPacket(...part)),
    ]);
    const window = new StackWindow();
    window.add(addr(sp), Uint8Array.from(Buffer.from(stack.join(''), 'hex')));
    return { pc, code, registers, window };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stub[Symbol.asyncDispose]();
  }
}

function addressOf(elf: ElfFile, name: RegExp): Addr {
  for (const symbol of elf.symbols) if (name.test(symbol.name)) return symbol.address;
  throw new Error(`the guest has no ${name}`);
}

function chain(stacks: Stacks, { registers, window }: Standing, unwinder: 'auto' | 'prologue') {
  const { frames, end } = stacks.walk({ register: (name) => registers.get(name) }, window, { unwinder });
  return { pcs: frames.map(({ pc }) => hex(pc)), end: end.reason };
}

async function open(name: string) {
  const elf = await ElfFile.open(elfPath(name));
  const arch: Architecture = loongarch64;
  await arch.prepare();
  return { elf, stacks: new Stacks(elf, arch), path: elfPath(name) };
}

for (const name of usually(['loong-o0', 'loong-o2'], (one) => one === 'loong-o2')) {
  t.test(`${name}: at each instruction of a poll the stack is what calls and returns have left open`, async (t) => {
    const { elf, stacks, path } = await open(name);
    await using guest = await Stepped.at(elf, path, addressOf(elf, /4exec9poll_task$/), 3);
    let now = await guest.look();
    const below = chain(stacks, now, 'auto');
    t.equal(below.end, 'entry');
    /** Return addresses, the innermost first. */
    let returns = below.pcs.slice(1);
    const different: string[] = [];
    let [calls, deepest] = [0, 0];
    for (let left = long ? 20_000 : 1_500; left > 0; left--) {
      for (const unwinder of ['auto', 'prologue'] as const) {
        const mine = chain(stacks, now, unwinder);
        const real = [hex(now.pc), ...returns].join(' ');
        if (mine.pcs.join(' ') !== real || mine.end !== 'entry')
          different.push(`${unwinder}: real ${real}\nmine ${mine.pcs.join(' ')} ${mine.end}`);
      }
      const before = now;
      await guest.step();
      now = await guest.look();
      const behind = before.pc + 4n;
      if (isCall(before.code)) {
        t.equal(hex(now.registers.get('r1') ?? 0n), hex(behind));
        returns = [hex(behind), ...returns];
        calls++;
      } else if (before.code === ret) {
        t.equal(hex(now.pc), returns[0]);
        returns = returns.slice(1);
      }
      deepest = Math.max(deepest, returns.length);
    }
    t.same(different.slice(0, 3), [], `${different.length} stacks`);
    t.ok(calls >= 20 && deepest >= below.pcs.length + 8, `${calls} calls, ${deepest} deep`);
  });
}

t.test('loong-o2: from an interrupt handler the stack goes on where the handler returns to', async (t) => {
  const { elf, stacks, path } = await open('loong-o2');
  await using guest = await Stepped.at(elf, path, addressOf(elf, /^irq_entry$/), 5);
  const found = new Set<string>();
  let now = await guest.look();
  let [stops, last] = [0, ''];
  const inHandler = ({ pc }: Standing): boolean =>
    elf.symbols.named('irq_entry').some(({ address, size }) => pc >= address && pc < address + BigInt(size));
  for (; last !== ertn && stops < 2_000; stops++) {
    for (const unwinder of ['auto', 'prologue'] as const) {
      const { pcs, end } = chain(stacks, now, unwinder);
      const handler = pcs.findIndex((pc) => inHandler({ ...now, pc: addr(BigInt(pc)) }));
      // In the first instructions and the last ones it is in ERA alone, which QEMU does not show.
      const isKept = !inHandler(now) || end === 'entry';
      if (isKept) found.add(`${pcs.slice(handler + 1).join(' ')} ${end}`);
    }
    last = now.code;
    await guest.step();
    now = await guest.look();
  }
  const { pcs, end } = chain(stacks, now, 'auto');
  t.equal(end, 'entry');
  t.same([...found], [`${pcs.join(' ')} ${end}`], `${stops} stops`);
  t.ok(stops > 100);
});
