// Names of frames: where a poll was inlined, the profile by what is awaited has it as a poll, too.
import t from 'tap';
import { findFutures } from '../../../src/async/futures/index.js';
import { DebugInfo } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { SampledFrames } from '../../../src/target/stacks/index.js';
import type { Frame } from '../../../src/target/unwind/index.js';
import { elfPath } from '../../qemu/guests/guests.js';

t.test('inlined polls are polls of the await tree, around what they call', async (t) => {
  for (const name of ['rv-o2-long', 'x86-o2']) {
    const elf = await ElfFile.open(elfPath(name));
    const debug = DebugInfo.load(elf);
    const futures = findFutures(debug);
    const names = new SampledFrames([{ elf, debug, futures }]);
    const stack = (pc: bigint): readonly string[] | undefined => {
      const found = names.awaited([{ pc, exact: true, image: undefined } as unknown as Frame]);
      return found?.map((frame) => frame.name);
    };
    let inside = 0;
    for (const future of futures.all) {
      for (const { address, into, host } of future.inlined) {
        const found = stack(address) ?? [];
        t.ok(found.includes(`poll ${future.future}`), `${name}: ${future.future} in ${into}: ${found.join(' < ')}`);
        const around = futures.byPollAddress(elf.codes.fromCode(host.lowPc ?? 0));
        if (around === undefined) continue;
        inside++;
        t.equal(found.at(-1), `poll ${around.future}`, 'the poll around it is the outermost');
      }
    }
    t.ok(inside > 5, `${inside} inside a poll function`);
    const other = [...elf.symbols].find(
      (symbol) => symbol.name.includes('poll') === false && symbol.type === 'function',
    );
    t.equal(other && stack(other.address), undefined, 'no poll, no tree');
  }
});
