// Places of inlined polls, short branches and wake functions that were kept for the next start, also of a program that a loader has moved meanwhile. Expected
// values come from a reading that keeps nothing.
import { readdirSync } from 'node:fs';
import t from 'tap';
import { architectureOf } from '../../../../src/arch/index.js';
import { findFutures } from '../../../../src/async/futures/index.js';
import { DebugInfo } from '../../../../src/dwarf/index.js';
import { ElfFile } from '../../../../src/elf/index.js';
import { CodeEntries } from '../../../../src/probes/code-entries.js';
import { InlinedSites } from '../../../../src/probes/kinds/poll/inlined-sites.js';
import { wakeFunctions } from '../../../../src/probes/kinds/poll/wakers.js';
import { pollsProgram } from '../../../support/native.js';
import { scratch } from '../../../support/small-programs.js';

t.test('places and windows are those of the first start, wherever the program lies', async (t) => {
  const path = pollsProgram(t, 'futures-waits-o3');
  const arch = architectureOf((await ElfFile.open(path)).machine);
  if (!arch) throw new Error('no architecture');
  await arch.prepare();
  /** `only`: keeps this number of copies. */
  const read = async (cache: string, loadBias: bigint, only?: number) => {
    process.env.RSPTRACE_CACHE = cache;
    const debug = DebugInfo.load(await ElfFile.open(path, { loadBias }));
    const futures = findFutures(debug);
    const sites = new InlinedSites(debug, futures, arch);
    const copies = futures.all.flatMap((future) => future.inlined.map((copy) => ({ future, copy })));
    const found = copies.slice(0, only).map(({ future, copy }) => sites.find(future, copy));
    sites.keep();
    const entries = CodeEntries.of(debug.elf, arch);
    const starts = [...debug.elf.symbols].filter(({ type, size }) => type === 'function' && size > 20).slice(0, 2000);
    const into = starts.map(({ address, size }) => entries.into({ address, length: 14 }, { address, length: size }));
    entries.keep();
    const wakes = wakeFunctions(debug).map(({ address, name, box }) => [address, name, box]);
    return {
      found,
      into,
      wakes,
      windows: [...sites.windows(found.flatMap((site) => ('begins' in site ? [site] : [])))],
    };
  };
  t.teardown(() => {
    delete process.env.RSPTRACE_CACHE;
  });
  const bias = 0x5555_5555_4000n;
  const [plain, moved] = [await read('off', 0n), await read('off', bias)];
  t.ok(plain.found.some((site) => 'begins' in site));
  t.ok(plain.found.some((site) => 'reason' in site));
  t.ok(plain.wakes.length > 2);
  t.notSame(plain, moved);
  const folder = scratch();
  await read(folder, 0n, 5);
  t.same(await read(folder, bias), moved, 'five are kept');
  t.same(await read(folder, 0n), plain, 'all are kept');
  t.same(await read(folder, bias), moved);
  const files = readdirSync(folder).join(' ');
  for (const name of ['short', 'sites', 'wakers']) t.match(files, `-${name}`);
});
