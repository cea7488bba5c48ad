// Tasks in a Future that counts their polls, in optimised builds: the counting Future's own result is in no memory. Against the guest's own counts.
import t from 'tap';
import { usually } from '../support/long.js';
import { tracePolls } from '../support/polls.js';

for (const guest of usually(['rv-asynctask-o3', 'x86-asynctask-lto'], (one) => one.startsWith('x86'))) {
  t.test(`${guest}: what became of each task, and where it waited last`, async (t) => {
    const { output, console } = await tracePolls(t, guest);
    // Counted at the end of each async fn's body.
    const ended = new Set([...console.matchAll(/^LAB stat (\w+) calls=\d+ polls=[1-9]/gm)].map(([, name]) => name));
    const { tasks } = output;
    let known = 0;
    for (const { instance, state, await: last } of tasks) {
      const [, name = ''] = /::stats::Task<\w+::work::(\w+)::/.exec(instance) ?? [];
      // Of some the poll inside was inlined, too.
      if (name === 'spawn_all' || state === 'unknown') continue;
      known++;
      t.equal(state === 'ready', ended.has(name), `${name}: ${state}`);
      t.ok(last, `${name}: its last await`);
    }
    t.equal(tasks.length, 9);
    t.ok(known >= 7, `${known} are known`);
    t.match(
      tasks.find(({ instance }) => instance.includes('::parked::')),
      { state: 'waiting', await: { line: 166 } },
    );
  });
}
