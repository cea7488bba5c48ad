// How long records wait where cores are short. What the kernel says is made up.
import t from 'tap';
import { DigestPace } from '../../src/inject/digest-pace.js';

/** A schedstat whose thread runs and waits as it is asked to, in milliseconds. */
class Thread {
  ran = 5000;
  waited = 700;
  readonly read = (): string => `${this.ran * 1e6} ${this.waited * 1e6} 42\n`;
}

t.test('no rest follows where the thread waits for no core', async (t) => {
  const thread = new Thread();
  const pace = new DigestPace(15, thread.read);
  for (let now = 0; now < 1000; now += 10) {
    thread.ran += 9;
    thread.waited += 0.5;
    pace.digested(now, now + 2);
    t.notOk(pace.rests(now + 2), `at ${now}: what it waited before counts for nothing`);
  }
});

t.test('a rest follows where the thread waits for a core, and as long as it does', async (t) => {
  const thread = new Thread();
  const pace = new DigestPace(15, thread.read);
  pace.digested(0, 2);
  t.notOk(pace.rests(2), 'one look knows no wait');
  thread.ran += 40;
  thread.waited += 20;
  pace.digested(100, 102);
  t.ok(pace.rests(102));
  t.ok(pace.rests(131));
  t.notOk(pace.rests(132), 'fifteen times the 2 ms that were digested');
  thread.ran += 100;
  pace.digested(200, 202);
  t.notOk(pace.rests(202), 'a core was free since');
});

t.test('no rest follows where the system counts no waits', async (t) => {
  const pace = new DigestPace(15, () => {
    throw new Error('ENOENT');
  });
  for (let now = 0; now < 1000; now += 100) {
    pace.digested(now, now + 2);
    t.notOk(pace.rests(now + 2));
  }
});
