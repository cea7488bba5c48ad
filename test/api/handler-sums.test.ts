// The handlers of the library against the table of the same run, and both against the guest's own counts: a handler is called for each poll
// that is counted, also of those that were inlined.
import t from 'tap';
import { launch } from '../../src/index.js';
import { Summary, tee } from '../../src/trace/index.js';
import { elfPath, guests, parseLab, qemuArgv, TIMING_DEPENDENT } from '../qemu/guests/guests.js';
import { usually } from '../support/long.js';

/** Guests that count their polls, and end by themselves. */
const counting = guests()
  .map(({ name }) => name)
  .filter((name) => /^(rv|x86)-(o\d|asynctask|embassy)/.test(name));

for (const name of usually(counting, (each) => each === 'rv-o2'))
  for (const engine of usually(['auto', 'stop'] as const, (each) => each === 'auto'))
    t.test(`${name}, engine ${engine}`, { timeout: 300_000 }, async (t) => {
      const texts: Uint8Array[] = [];
      const onConsole = (text: Uint8Array): void => void texts.push(Uint8Array.from(text));
      await using target = await launch({ engine, elf: elfPath(name), command: qemuArgv(name), onConsole });
      const calls = new Map<string, number>();
      const all = target.probe('poll:**', ({ future }) => {
        calls.set(future?.instance ?? '', (calls.get(future?.instance ?? '') ?? 0) + 1);
      });
      const table = new Summary();
      t.equal((await target.run({ duration: '250s', sink: tee([table]) })).end, 'guest-ended');
      const rows = table.rows().filter(({ polls }) => polls > 0);
      t.ok(rows.length > 0);
      t.strictSame(
        [...calls].sort(),
        rows.map(({ instance, polls }) => [instance, polls] as const).sort(),
        'a handler for each poll',
      );
      t.equal(
        all.hits,
        rows.reduce((sum, { polls }) => sum + polls, 0),
      );
      const partly = new Set(all.unseen.map(({ instance }) => instance));
      const { stats } = parseLab(Buffer.concat(texts).toString('latin1'));
      let compared = 0;
      for (const { future, instance, polls } of rows) {
        const counted = stats.get(future.split('::').at(-1) ?? '')?.polls;
        if (!counted || TIMING_DEPENDENT.has(future) || partly.has(instance)) continue;
        t.equal(polls, counted, `${future}: as the guest counts`);
        compared++;
      }
      t.comment(`${compared} of ${rows.length} rows are counted by the guest`);
    });
