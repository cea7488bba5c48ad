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
  digested = 0;
  /** How often the ring was looked at in a row while nothing could be read. */
  vain = 0;
  longestVain = 0;

  constructor(records: number, room = 100) {
    this.#written = records;
    this.#room = room;
  }

  get hasRoom(): boolean {
    return this.#queue < this.#room;
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
    this.filled = this.#ring / 100;
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
