// What a reader beside a running target does when records come faster than they are understood: a target that never waits for long is never
// given up, and every record comes out.
import t from 'tap';
import { type Drainable, LiveDrain } from '../../src/inject/live-drain.js';

/** A target that fills its ring at once, and a queue that holds no more than one such ring. */
class Flood implements Drainable {
  #written: number;
  readonly #room: number;
  #ring = 0;
  #queue = 0;
  filled = 0;
  /** So that a read leaves time for other work. */
  fillsSlowly = false;
  digested = 0;
  /** How often the ring was looked at in a row while nothing could be read. */
  vain = 0;
  longestVain = 0;

  constructor(records: number, room = 100) {
    this.#written = records;
    this.#room = room;
  }

  get drained(): this {
    return this;
  }

  get hasRoom(): boolean {
    return this.#queue < this.#room;
  }

  get undigested(): number {
    return this.#queue;
  }

  renew(): void {}

  drainLive(): boolean {
    if (!this.hasRoom) {
      this.longestVain = Math.max(this.longestVain, ++this.vain);
      return false;
    }
    this.#queue += this.#ring;
    this.#ring = Math.min(this.#written, 100);
    this.#written -= this.#ring;
    this.filled = this.fillsSlowly ? 0 : this.#ring / 100;
    return false;
  }

  async drainStopped(): Promise<void> {}

  digest(): boolean {
    this.vain = 0;
    const some = Math.min(this.#queue, 10);
    this.#queue -= some;
    this.digested += some;
    return this.#queue > 0;
  }
}

t.test('a full queue is digested, however fast the ring fills', async (t) => {
  const flood = new Flood(1000);
  const drain = new LiveDrain(flood, (thrown) => t.fail(String(thrown)));
  const end = Date.now() + 10_000;
  while (flood.digested < 1000 && flood.longestVain < 10 && Date.now() < end)
    await new Promise((resolve) => setImmediate(resolve));
  drain.stop();
  t.equal(flood.digested, 1000);
  t.equal(flood.longestVain, 1, 'a ring that cannot be read is not looked at again before something was digested');
});

t.test('records are counted soon if a number of them ends the recording, however fast the ring fills', async (t) => {
  for (const digestsAlways of [false, true]) {
    const flood = new Flood(100_000, Number.POSITIVE_INFINITY);
    const drain = new LiveDrain(flood, (thrown) => t.fail(String(thrown)), digestsAlways);
    for (let looks = 0; looks < 10; looks++) await new Promise((resolve) => setImmediate(resolve));
    drain.stop();
    t.equal(flood.digested > 0, digestsAlways, `${flood.digested} of 1,000 that were read`);
  }
});

t.test('where cores are short records wait, as long as there is room for them', async (t) => {
  const pace = { rests: () => true, digested: () => {} };
  for (const [room, waits] of [
    [Number.POSITIVE_INFINITY, true],
    [100, false],
  ] as const) {
    const flood = new Flood(1000, room);
    flood.fillsSlowly = true;
    const drain = new LiveDrain(flood, (thrown) => t.fail(String(thrown)), false, pace);
    const end = Date.now() + 10_000;
    while (flood.undigested + flood.digested < 1000 && Date.now() < end)
      await new Promise((resolve) => setTimeout(resolve, 1));
    drain.stop();
    t.equal(flood.undigested + flood.digested, 1000, 'all of them are read');
    t.equal(flood.digested === 0, waits);
  }
});
