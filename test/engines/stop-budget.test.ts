import t from 'tap';
import { type Addr, addr } from '../../src/base/addr.js';
import { StopBudget } from '../../src/engines/stop-budget.js';

/** Hits of these probes in turn, each after `everyMs`, of which the target stands `stoodMs`. Gives what is switched off, and at which stop. */
function spent(
  probes: readonly (string | Addr)[],
  { stops, everyMs, stoodMs }: { readonly stops: number; readonly everyMs: number; readonly stoodMs: number },
): (readonly [number, string | Addr])[] {
  const budget = new StopBudget();
  const off: (readonly [number, string | Addr])[] = [];
  for (let i = 0; i < stops; i++) {
    const probe = probes[i % probes.length] ?? '';
    if (off.some(([, name]) => name === probe)) continue;
    const one = budget.spend(probe, { hostMs: i * everyMs, ranMs: i * (everyMs - stoodMs) });
    for (const name of one) off.push([i, name]);
  }
  return off;
}

t.test('200 stops at once are taken, more are not', (t) => {
  t.same(spent(['a'], { stops: 200, everyMs: 0.01, stoodMs: 0.01 }), []);
  t.same(spent(['a'], { stops: 1000, everyMs: 0.01, stoodMs: 0.01 }), [[200, 'a']]);
  t.end();
});

t.test('50 stops a second are taken for ever, where they take less than 1 % of the time', (t) => {
  t.same(spent(['a'], { stops: 20_000, everyMs: 20, stoodMs: 0.1 }), []);
  t.equal(
    spent(['a'], { stops: 20_000, everyMs: 10, stoodMs: 0.05 })[0]?.[0],
    399,
    'a hundred a second: 200 in reserve',
  );
  const slow = spent(['a'], { stops: 20_000, everyMs: 40, stoodMs: 2 });
  t.equal(slow[0]?.[0], 249, '25 a second of 2 ms are 5 %: 5 a second may be');
  t.end();
});

t.test('the probe with most hits is switched off, and the others stay', (t) => {
  t.same(
    spent(['rare', 'often', 'often'], { stops: 3000, everyMs: 2, stoodMs: 0.01 }).map(([, name]) => name),
    ['often', 'rare'],
  );
  t.same(
    spent(['rare', ...Array.from({ length: 99 }, () => 'often')], { stops: 10_000, everyMs: 1, stoodMs: 0.01 }).map(
      ([, name]) => name,
    ),
    ['often'],
  );
  t.end();
});

t.test('when it is spent again soon, twice as many are switched off: a thousand cost hardly more than ten', (t) => {
  const stops = (count: number): number => {
    const probes = Array.from({ length: count }, (_, i) => `p${i}`);
    return spent(probes, { stops: 100_000, everyMs: 0.1, stoodMs: 0.1 }).at(-1)?.[0] ?? 0;
  };
  t.ok(stops(10) < 400, `${stops(10)} stops`);
  t.ok(stops(1000) < 5 * stops(10) + 1000, `${stops(1000)} stops, of which each probe has made one`);
  t.end();
});

t.test('a place where calls return is given up like a probe that stops too often', (t) => {
  const place = addr(0x1000n);
  const returns = Array.from({ length: 9 }, () => place);
  t.same(spent(['entry', ...returns], { stops: 210, everyMs: 0.01, stoodMs: 0.01 }), [[200, place]]);
  t.end();
});

t.test('a long stop counts for several: the target stands for half a second at most', (t) => {
  for (const stoodMs of [4, 10, 100]) {
    const [first] = spent(['a'], { stops: 1000, everyMs: stoodMs + 0.1, stoodMs });
    const ms = (first?.[0] ?? 1000) * stoodMs;
    t.ok(ms > 300 && ms < 510, `stops of ${stoodMs} ms: switched off after ${ms} ms`);
  }
  t.end();
});

t.test('runs that are to be alike have their stops counted, not timed', (t) => {
  const offs = [0.01, 400].map((ms) => {
    const budget = new StopBudget(true);
    const off: number[] = [];
    for (let i = 0; i < 2000; i++) {
      if (budget.spend(`p${off.length}`, { hostMs: i * ms, ranMs: (i * ms) / 2 }).length > 0) off.push(i);
    }
    return off;
  });
  t.same(offs[0], [1000, 1251, 1502, 1753]);
  t.same(offs[0], offs[1]);
  t.end();
});
