// Bytes of a stack that look like a Future that waits: what its references lead to shows that they are none.
import t from 'tap';
import { Soundness } from '../../../src/async/tasks/blocking.js';
import { type Addr, addr } from '../../../src/base/addr.js';
import { DebugInfo } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { elfPath } from '../../qemu/guests/guests.js';

/** Words at addresses; nothing else can be read. */
function memoryOf(words: Readonly<Record<number, bigint>>): {
  read(at: Addr, length: number): Promise<Uint8Array | undefined>;
} {
  return {
    async read(at, length) {
      const bytes = new Uint8Array(length);
      for (let i = 0; i < length; i++) {
        const word = words[(Number(at) + i) & ~7];
        if (word === undefined) return undefined;
        bytes[i] = Number((word >> BigInt(8 * ((Number(at) + i) & 7))) & 0xffn);
      }
      return bytes;
    },
  };
}

t.test('a reference to a shared value', async (t) => {
  const debug = DebugInfo.load(await ElfFile.open(elfPath('rv-o2')));
  // `c: &Rc<RefCell<Chan<u64>>>`, and `started: bool`
  const [type] = debug.typesNamed('labkern::futs::Recv<u64>');
  if (!type) return t.fail('the type is there');
  const [future, rc, inner] = [0x1000, 0x2000, 0x3000];
  const holds = (words: Readonly<Record<number, bigint>>): Promise<boolean> =>
    new Soundness(memoryOf({ [future]: BigInt(rc), [future + 8]: 1n, ...words })).holds(type, addr(future));
  const counts = { [inner]: 1n, [inner + 8]: 1n };
  t.equal(await holds({ [rc]: BigInt(inner), ...counts }), true);
  t.equal(await holds({ [rc]: BigInt(inner), [inner]: 0n, [inner + 8]: 1n }), false, 'nobody shares it');
  t.equal(await holds({ [rc]: 0x8082_6422_60e2_70a2n, ...counts }), false, 'code');
  t.equal(await holds(counts), false, 'no memory');
  t.equal(await holds({ [rc]: BigInt(inner), ...counts, [future + 8]: 3n }), false, 'no bool');
});
