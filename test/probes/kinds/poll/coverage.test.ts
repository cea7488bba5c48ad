// What a recording has not got keeps its Futures from having been seen exactly.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { architectureOf } from '../../../../src/arch/index.js';
import { findFutures } from '../../../../src/async/futures/index.js';
import { DebugInfo } from '../../../../src/dwarf/index.js';
import { ElfFile } from '../../../../src/elf/index.js';
import { recordedCoverage, type SeenFuture } from '../../../../src/probes/kinds/poll/coverage.js';
import { InlinedSites } from '../../../../src/probes/kinds/poll/inlined-sites.js';
import { elfPath } from '../../../qemu/guests/guests.js';
import { scratchFolder } from '../../../support/command.js';

t.test('events that are missing, and probes that are left out', async (t) => {
  const elf = await ElfFile.open(elfPath('rv-o2'));
  const [one, other] = findFutures(DebugInfo.load(elf)).all.filter(({ polls }) => polls.length > 0);
  const [poll] = one?.polls ?? [];
  if (!one || !other || !poll) throw new Error('the guest has more Futures');
  const exact = { seen: 'exact', reason: undefined, help: undefined } as const;
  const not = { seen: 'not', reason: 'its code is inlined', help: undefined } as const;
  const seen: SeenFuture[] = [
    { future: one, ...exact },
    { future: other, ...exact },
    { future: one, ...not },
  ];
  const probe = { name: one.future, address: poll.address, why: 'its code is short', engine: 'none' } as const;
  const told = (missed: Parameters<typeof recordedCoverage>[1]): readonly (readonly [string, string | undefined])[] =>
    recordedCoverage(seen, missed).map(({ seen, reason }) => [seen, reason] as const);
  const unseen = ['not', 'its code is inlined'] as const;

  t.same(told({ engines: [{ ...probe, engine: 'target', why: undefined }], tailLost: false, missing: 0 }), [
    ['exact', undefined],
    ['exact', undefined],
    unseen,
  ]);
  t.same(told({ engines: [probe] }), [['lower-bound', 'its code is short'], ['exact', undefined], unseen]);
  const lost = ['lower-bound', 'the guest ended with events that were not read'];
  t.same(told({ engines: [], tailLost: true }), [lost, lost, unseen]);
  t.same(told({ engines: [probe], tailLost: true }), [['lower-bound', 'its code is short'], lost, unseen]);
  for (const [missing, text] of [
    [1, '1 record is missing'],
    [2, '2 records are missing'],
  ] as const) {
    t.same(told({ engines: [], missing }), [['lower-bound', text], ['lower-bound', text], unseen]);
  }
  // What a process without trampolines leaves to be derived: its stops are not worth it.
  const [first, second] = recordedCoverage(seen, { engines: [] }, [
    { instance: one.instance, derived: 1 },
    { instance: other.instance, derived: 0 },
  ]);
  t.match(first, { seen: 'lower-bound', reason: /stops there are spared/, help: /--exact/ });
  t.equal(second?.seen, 'exact');
});

t.test('no poll is seen in a function whose table of jumps cannot be read', async (t) => {
  const folder = scratchFolder(t);
  const [without, zeros] = ['without.elf', 'zeros'].map((name) => join(folder, name)) as [string, string];
  const whole = await ElfFile.open(elfPath('rv-o2'));
  writeFileSync(zeros, new Uint8Array(whole.section('.rodata')?.length ?? 0));
  execFileSync('riscv64-linux-gnu-objcopy', ['--update-section', `.rodata=${zeros}`, elfPath('rv-o2'), without]);
  const reasonsIn = async (elf: ElfFile): Promise<readonly (string | undefined)[]> => {
    const [debug, arch] = [DebugInfo.load(elf), architectureOf(elf.machine)];
    if (!arch) throw new Error('no architecture');
    const futures = findFutures(debug);
    const sites = new InlinedSites(debug, futures, arch);
    return futures.all.flatMap((future) =>
      future.inlined.flatMap((copy) => {
        if (!copy.into.includes('device_task')) return [];
        const site = sites.find(future, copy);
        return ['reason' in site ? site.reason : undefined];
      }),
    );
  };
  const seen = await reasonsIn(whole);
  t.ok(seen.length > 3 && seen.includes(undefined), 'with it they are seen');
  const unseen = await reasonsIn(await ElfFile.open(without));
  t.equal(unseen.length, seen.length);
  for (const reason of unseen) t.equal(reason, 'a jump of the function around it may lead anywhere');
});
