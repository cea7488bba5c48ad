// Where inlined polls have their Futures. Debug info, the code and the Future around tell that, each of some of them: they have to agree.
import t from 'tap';
import { type Architecture, architectureOf } from '../../../../src/arch/index.js';
import { type FutureType, findFutures, type InlinedPoll } from '../../../../src/async/futures/index.js';
import { taskPlaces } from '../../../../src/async/tasks/index.js';
import { DebugInfo } from '../../../../src/dwarf/index.js';
import { ElfFile } from '../../../../src/elf/index.js';
import { FunctionGraphs } from '../../../../src/probes/function-graphs.js';
import { InlinedSites } from '../../../../src/probes/kinds/poll/inlined-sites.js';
import { PollsAround } from '../../../../src/probes/kinds/poll/poll-around.js';
import { hostedTasks, selfPlace } from '../../../../src/probes/kinds/poll/self-place.js';
import { Shapes } from '../../../../src/values/index.js';
import { elfPath } from '../../../qemu/guests/guests.js';
import { pollsProgram } from '../../../support/native.js';

interface Distance {
  readonly name: string;
  /** From the Future around, where both are known by one register. */
  readonly found: number;
  /** Where the type says that the Future around awaits this one. */
  readonly slot: number;
}

async function distances(debug: DebugInfo, arch: Architecture): Promise<Distance[]> {
  const futures = findFutures(debug);
  const tasks = hostedTasks(futures, await taskPlaces(debug, futures));
  const sites = new InlinedSites(debug, futures, arch, tasks);
  const [around, graphs, shapes] = [new PollsAround(futures), new FunctionGraphs(debug, arch), new Shapes(debug)];
  const ofPoll = (future: FutureType, poll: InlinedPoll): Distance[] => {
    const { die, host } = poll;
    const outer = around.directly(die, host);
    const site = outer && sites.find(future, poll);
    const awaits = outer?.future.states.flatMap(({ awaitee }) => (awaitee?.future === future ? [awaitee] : [])) ?? [];
    const [slot, ...others] = new Set(awaits.map(({ offset }) => offset));
    if (!outer || !site || !('begins' in site) || slot === undefined || others.length > 0) return [];
    const about = {
      futures,
      around,
      arch,
      graphs,
      shapes,
      host,
      task: tasks.get(host.offset),
      copy: outer.copy ?? host,
    };
    return site.begins.flatMap(({ address, self }) => {
      const place = selfPlace(outer.future, address, about);
      const isAlike = place?.register === self.register && place.through === self.through;
      return isAlike ? [{ name: future.instance, found: self.offset - place.offset, slot }] : [];
    });
  };
  return futures.all.flatMap((future) => future.inlined.flatMap((poll) => ofPoll(future, poll)));
}

for (const [name, least] of [
  ['rv-asynctask-lto', 17],
  ['futures-waits-o3', 18],
] as const) {
  t.test(name, async (t) => {
    const elf = await ElfFile.open(name === 'futures-waits-o3' ? pollsProgram(t, name) : elfPath(name));
    const arch = architectureOf(elf.machine);
    if (!arch) throw new Error(`no architecture of ${name}`);
    await arch.prepare();
    const found = await distances(DebugInfo.load(elf), arch);
    for (const { name, found: distance, slot } of found) t.equal(distance, slot, name);
    t.ok(found.length >= least, `${found.length}`);
  });
}
