// How often, and how long, each task of an executor was polled, without stopping the machine for it.
//   node --import=tsx examples/histogram-by-task.ts kernel.elf 'fn:crate::exec::poll_task' t.id -- qemu-system-riscv64 ...
import { launch } from 'rsptrace';

const [elf = '', probe = '', id = '', , ...command] = process.argv.slice(2);
await using target = await launch({ elf, command, onConsole: (text) => process.stderr.write(text) });

const tasks = new Map<string, { polls: number; ns: number }>();
const polled = target.probe(probe as `fn:${string}`, {
  capture: [id],
  onReturn(hit, _result, duration) {
    const key = String(hit.values[id]);
    const task = tasks.get(key) ?? { polls: 0, ns: 0 };
    tasks.set(key, { polls: task.polls + 1, ns: task.ns + duration });
  },
});

const { end } = await target.run({ duration: '60s' });
console.log(`${end}, by ${polled.engine}${polled.reason ? ` (${polled.reason})` : ''}`);
for (const [key, { polls, ns }] of [...tasks].sort((a, b) => b[1].polls - a[1].polls))
  console.log(`task ${key}: ${'#'.repeat(Math.ceil(polls / 4))} ${polls} polls, ${Math.round(ns / 1000)} us`);
