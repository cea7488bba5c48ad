// The engine without stops against GDB + Python and against the stop engine, in microseconds of wall time an event; and what else it is to keep to.
// What is compared is interleaved, so that load falls on all; medians over rounds, least and most in parentheses.
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { arm } from './engine/arm.mjs';
import { attached, small } from './engine/attached.mjs';
import { gdbserver } from './engine/gdbserver.mjs';
import { idle } from './engine/idle.mjs';
import { kinds, live } from './engine/live.mjs';
import { smp } from './engine/smp.mjs';

const parts = { live, attached, small, gdbserver, idle, arm, smp };
const { values } = parseArgs({
  options: {
    part: { type: 'string', default: Object.keys(parts).join() },
    rounds: { type: 'string', default: '3' },
    hits: { type: 'string', default: '200' },
    events: { type: 'string', default: '10000000' },
    functions: { type: 'string', default: '5000' },
    seconds: { type: 'string', default: '120' },
    kind: { type: 'string', multiple: true, default: ['polls', 'both'] },
    guest: { type: 'string', multiple: true, default: ['rv-o2-long', 'x86-o2-long'] },
    probe: { type: 'string', default: 'poll:labkern::work::leaf_io' },
  },
});
const options = {
  rounds: Number(values.rounds),
  hits: Number(values.hits),
  events: Number(values.events),
  functions: Number(values.functions),
  seconds: Number(values.seconds),
  kinds: values.kind,
  guests: values.guest,
  probe: values.probe,
};
const wanted = values.part.split(',');
const unknown = wanted.find((name) => !Object.hasOwn(parts, name));
if (unknown !== undefined) throw new Error(`there is no part ${unknown}: ${Object.keys(parts).join(', ')}`);

const odd = values.kind.find((name) => !Object.hasOwn(kinds, name));
if (odd !== undefined) throw new Error(`there is no kind ${odd}: ${Object.keys(kinds).join(', ')}`);

const load = () => loadavg()[0].toFixed(1);
console.log(
  `up to ${options.rounds} interleaved rounds on ${/model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]}`,
);
for (const name of wanted) {
  const [began, before] = [performance.now(), load()];
  try {
    await parts[name](options);
  } catch (error) {
    // The others are worth having all the same.
    console.log(`${name} failed: ${error.stack}`);
    process.exitCode = 1;
  }
  console.log(`  [${((performance.now() - began) / 1e3).toFixed(0)} s, load ${before} before, ${load()} after]`);
}
process.exit();
