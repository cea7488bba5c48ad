// Where a probe has to be found when there are several programs: one that names a program, in that one, whatever else is asked for.
import t from 'tap';
import { type Logger, silent } from '../../src/base/logger.js';
import { ElfFile } from '../../src/elf/index.js';
import { parseProbe } from '../../src/probes/index.js';
import { prepare } from '../../src/record/index.js';
import { elfPath } from '../qemu/guests/guests.js';

/** The probes that are said to match nothing. */
async function unmatched(texts: readonly string[], others: readonly ElfFile[]): Promise<unknown[]> {
  const said: unknown[] = [];
  const logger: Logger = { ...silent, warn: (about) => said.push((about as { probe?: string }).probe) };
  await prepare(
    elfPath('rv-procs'),
    texts.map((text) => parseProbe(text)),
    logger,
    { others },
  );
  return said;
}

t.test('a probe that matches nothing', async (t) => {
  const mill = await ElfFile.open(elfPath('rv-procs-mill'));
  const pond = await ElfFile.open(elfPath('rv-procs-pond'));
  const fails = async (what: string, wanted: string, ...others: string[]) => {
    const error = { code: 'PROBE_NO_MATCH', message: `no ${what} matches '${wanted}'` };
    await t.rejects(unmatched([wanted, ...others], [mill, pond]), error);
  };
  await fails('Future', 'poll:rv-procs-mill/grindd', 'poll:**');
  await fails('function', 'fn:rv-procs-mill/nothing_x', 'fn:*main*');
  await fails('function', 'fn:rv-procs-mill/nothing_x', 'fn:rv-procs-mill/main');
  await fails('function', 'fn:rv-procs-mill/nothing_x', 'fn:rv-procs-pond/main');
  await t.rejects(unmatched(['poll:rv-procs-mill/grindd', 'poll:**'], [mill]), {
    code: 'PROBE_NO_MATCH',
    hint: /nearest: .*grind\b/,
  });
  await t.rejects(
    unmatched(['fn:rv-procs/nothing_x', 'fn:dispatch'], []),
    { code: 'PROBE_NO_MATCH' },
    'of one program',
  );
  await t.resolves(unmatched(['fn:rv-procs-mill/main', '!fn:rv-procs-mill/nothing_x'], [mill, pond]), 'to leave out');
  t.strictSame(await unmatched(['poll:nothing_x', 'poll:grind', 'poll:janitor'], [mill, pond]), ['poll:nothing_x']);
  t.strictSame(await unmatched(['poll:nothing_x', 'poll:**'], []), ['poll:nothing_x'], 'of one program');
});

t.test('of several probes the first that finds nothing says why, as it would alone', async (t) => {
  const said: unknown[] = [];
  const logger: Logger = { ...silent, warn: (about, message) => said.push([about, message]) };
  const probes = ['fn:labkern::work::deep7', 'fn:labkern::work::level1::**', 'fn:not_a_name'];
  await prepare(
    elfPath('rv-o2'),
    probes.map((text) => parseProbe(text)),
    logger,
  );
  t.match(said, [
    [{ probe: probes[1] }, /the compiler inlined every function that matches .*; probe where its code went: /],
    [{ probe: probes[2] }, 'a probe that matches nothing, or only what the compiler inlined: alone it says which'],
  ]);
});
