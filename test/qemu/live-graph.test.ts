// `rsptrace graph --remote`: what it calls by objdump's word, how often by the guest's own counters.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { StaticCalls } from '../../src/probes/index.js';
import { architectureFor } from '../../src/target/index.js';
import { frozenGuest, frozenQemu, rsptrace } from '../support/command.js';
import { kilohertz10 } from '../support/harts.js';
import { usually } from '../support/long.js';
import { hartCounts, hartsKernel } from '../support/tiny-kernels.js';
import { elfPath, parseLab } from './guests/guests.js';

t.test('what each function of a program calls, as objdump lists it', async (t) => {
  const path = elfPath('x86-o2');
  const elf = await ElfFile.open(path);
  const arch = architectureFor(elf);
  await arch.prepare();
  const calls = new StaticCalls({ elf, arch, debug: DebugInfo.load(elf) });
  const listing = execFileSync('objdump', ['-d', '--no-show-raw-insn', path], { encoding: 'utf8', maxBuffer: 1 << 28 });
  const lines = [...listing.matchAll(/^ +([0-9a-f]+):\t(?:call +([0-9a-f]+) <|(call) +\*)?/gm)].map(
    ([, at, target, open]) => ({
      at: BigInt(`0x${at}`),
      target: target === undefined ? undefined : BigInt(`0x${target}`),
      open: open !== undefined,
    }),
  );
  let compared = 0;
  for (const { address, size, isFunction } of calls.functions()) {
    if (!isFunction || size === 0) continue;
    const inside = lines.filter(({ at }) => at >= address && at < address + BigInt(size));
    const found = calls.of(address);
    for (const { target } of inside) if (target !== undefined) t.ok(found.direct.has(target as typeof address));
    t.equal(
      found.isOpen,
      inside.some(({ open }) => open),
      `pointers in ${address}`,
    );
    compared += inside.filter(({ target }) => target !== undefined).length;
  }
  t.ok(compared > 200, `${compared} calls`);
});

t.test('a function and what it calls, so many levels deep, as it happens', async (t) => {
  const guest = frozenGuest(t, 'rv-o2');
  const path = elfPath('rv-o2');
  const where = ['--remote', guest.socket, '--fn', 'deep3', '-D', '3'];
  const ran = await rsptrace('graph', ...where, '--scratch', 'hidden', path).ended;
  t.equal(ran.status, 0, ran.stderr);
  const { stats } = parseLab((await guest.ended).stdout);
  const calls = stats.get('deep_calls')?.calls;
  const lines = ran.stdout.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const named = (pattern: string): number => lines.filter((line) => new RegExp(`\\|  ${pattern}$`).test(line)).length;
  t.equal(named('labkern::work::deep3\\(.*\\) \\{'), calls);
  t.equal(named('  labkern::work::deep4\\(.*\\) \\{'), calls);
  t.equal(named('    labkern::work::deep5\\(.*\\);.*'), calls);
  t.equal(named('  \\} /\\* labkern::work::deep4.* \\*/'), calls);
  t.equal(lines.length, 5 * (calls ?? 0), 'nothing else');
});

for (const arch of usually(['riscv64', 'x86_64'] as const, (one) => one === 'riscv64'))
  t.test(`${arch}: four harts at once, each with its own calls, and interrupts in between`, async (t) => {
    const { elf, command } = hartsKernel(t, arch, { harts: 4, calls: 1000, period: kilohertz10, ticks: 5 });
    const guest = frozenQemu(t, command);
    const ran = await rsptrace('graph', '--remote', guest.socket, '--fn', '**', '--scratch', 'hidden', elf).ended;
    t.equal(ran.status, 0, ran.stderr);
    const counts = hartCounts((await guest.ended).stdout);
    t.equal(counts.length, 4);
    const graph = graphOf(ran.stdout);
    const byHart = counts.map(({ outer, inner }) => ({ outer, inner }));
    t.same(
      graph.calls.map((calls) => ({ outer: calls.get('outer'), inner: calls.get('inner') })),
      byHart,
    );
    t.same(graph.wrong, [], 'nothing nests in another hart');
    const marks = (mark: string): number => ran.stdout.split('\n').filter((line) => line.endsWith(mark)).length;
    const ticks = counts.reduce((sum, each) => sum + each.ticks, 0);
    t.ok(
      marks('==========> |') > 0 && marks('==========> |') <= ticks,
      `${marks('==========> |')} of ${ticks} ticks came in calls`,
    );
    t.equal(marks('<========== |'), marks('==========> |'));
  });

/** The calls of each hart, as its column has them; `wrong`: ends that fit no begin of that hart. */
function graphOf(text: string): { readonly calls: readonly Map<string, number>[]; readonly wrong: readonly string[] } {
  const calls: Map<string, number>[] = [];
  const open: string[][] = [];
  const wrong: string[] = [];
  for (const line of text.split('\n')) {
    const [, hart = '', leaf, begun, ended] =
      /\|\s+(\d+)\) .*?\| +(?:(\w+)\(.*\);.*|(\w+)\(.*\) \{|\} \/\* (\w+).* \*\/)$/.exec(line) ?? [];
    if (hart === '') continue;
    const number = Number(hart);
    calls[number] ??= new Map();
    open[number] ??= [];
    const name = leaf ?? begun;
    if (name !== undefined) calls[number].set(name, (calls[number].get(name) ?? 0) + 1);
    if (begun !== undefined) open[number].push(begun);
    if (ended !== undefined && open[number].pop() !== ended) wrong.push(line);
  }
  return { calls, wrong };
}

t.test('wrong words', async (t) => {
  const path = elfPath('rv-o2');
  const refused = async (...words: readonly string[]): Promise<string> =>
    (await rsptrace('graph', ...words).ended).stderr;
  t.match(await refused('--remote', ':1', path), /--remote needs --fn: where the graph begins \[USAGE\]/);
  t.match(
    await refused('--remote', ':1', '--fn', 'deep33', path),
    /--fn 'deep33' matches no function .*\[PROBE_NO_MATCH\].*nearest: .*deep3/s,
  );
  t.match(await refused('--remote', ':1', '--fn', 'deep3', '--json', path), /--json is for saved traces \[USAGE\]/);
  t.match(await refused('--fn', 'deep3', path), /no program that Linux starts \[USAGE\]\n +--remote/);
});
