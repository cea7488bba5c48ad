// What stops add to a clock that follows the host's: the least is taken out, so that what is told is never too little.
import t from 'tap';
import { RepeatedLeak, SteadyClock } from '../../src/clock/index.js';
import type { Batch, StopReply } from '../../src/rsp/index.js';

const stop: StopReply = { kind: 'gone' };

/** What QEMU takes at least to translate the code behind a stop. Behind one with nothing to do no code runs. */
const TRANSLATION = 25_000;

/** A guest whose clock gains `work` and what the host adds, from stop to stop. */
class Guest {
  #now = 0;
  readonly clock = new SteadyClock({
    info: { name: 'test', resolutionNs: 100, guest: true },
    request: () => () => this.#now,
  });
  readonly leak = new RepeatedLeak(this.clock);
  readonly #batch = {} as Batch;

  get time(): number {
    return this.clock.request(this.#batch)();
  }

  #goOn(): Promise<StopReply | undefined> {
    return this.leak.resume(this.#batch, { kind: 'continue' }, async () => stop);
  }

  /** Goes on, and stops at a probe's address; as often as nothing is to be done there. Returns the time of the hit. */
  async hit(pc: bigint, work: number, host: () => number): Promise<number> {
    await this.#goOn();
    this.#now += work + TRANSLATION + host();
    for (;;) {
      this.leak.arrived(pc, 'a', this.time);
      if (!this.leak.wantsAgain(pc, 'a')) return this.time;
      await this.#goOn();
      this.#now += host();
    }
  }
}

/** 30 us and up to 20 more; each fiftieth time ten seconds. */
function busyHost(): () => number {
  let stops = 0;
  return () => 30_000 + ((stops * 7919) % 20_000) + (++stops % 50 === 0 ? 1e10 : 0);
}

t.test('durations are never too short, and no stop with nothing to do is in them', async (t) => {
  const guest = new Guest();
  const host = busyHost();
  let begun = await guest.hit(1n, 0, host);
  const found: number[] = [];
  for (let call = 0; call < 3000; call++) {
    const ended = await guest.hit(2n, 5_000, host);
    found.push(ended - begun);
    begun = await guest.hit(1n, 700, host);
  }
  t.ok(
    found.every((time) => time >= 5_000),
    `the shortest took ${Math.min(...found)} ns`,
  );
  const usual = found.filter((time) => time <= 5_000 + TRANSLATION + 20_000).length;
  t.ok(usual > found.length * 0.95, `${usual} of ${found.length} have what a stop adds beyond the least`);
  const { facts } = guest.leak;
  t.ok(facts && facts.perStopNs >= 30_000 && facts.perStopNs < 31_000, `${facts?.perStopNs} ns each`);
  t.ok(facts && facts.measured > 6000 / 64, `measured ${facts?.measured} times`);
  const rest = facts?.rest;
  t.ok(rest && rest !== 'tick' && (rest.perStopNs ?? 0) < 50_000, 'one outlier does not make the rest');
});

t.test('an interrupt that the guest takes at a stop with nothing to do is in the call around it', async (t) => {
  const lasts = async (handler: number): Promise<number> => {
    const guest = new Guest();
    const begun = await guest.hit(1n, 0, () => 30_000);
    const measured = guest.leak.facts?.stops;
    let left = handler;
    const host = (): number => {
      const now = guest.leak.facts?.stops === measured ? 0 : left;
      left -= now;
      return 30_000 + now;
    };
    while (left > 0) await guest.hit(2n, 1_000, host);
    return (await guest.hit(3n, 1_000, host)) - begun;
  };
  t.equal((await lasts(400_000)) - (await lasts(1)), 399_999);
});

t.test('time that nobody times is the clock as it is', async (t) => {
  const guest = new Guest();
  await guest.hit(1n, 0, () => 30_000);
  guest.leak.nothingIsOpen();
  const before = guest.time;
  await guest.hit(2n, 1_000, () => 30_000);
  t.equal(guest.time - before, 31_000 + TRANSLATION);
  t.equal(guest.clock.takenOut, 0);
});
