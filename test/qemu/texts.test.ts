// The texts that a kernel's console is given, read without stops: together they are what the console printed.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2'))
  t.test(`${name}: the texts of all calls are the console's`, async (t) => {
    const words = ['--engine', 'target', '-p', 'fn:**write_str'];
    const { trace, console } = await runLab(t, name, words, { file: 'calls.txt' });
    const texts = [...readFileSync(trace, 'utf8').matchAll(/write_str\(s: (".*?")\)(?= = | \{|$)/gm)];
    const told = texts.map(([, text = '']) => JSON.parse(text) as string).join('');
    const whole = console.replaceAll('\r', '');
    const from = whole.indexOf('LAB boot');
    t.ok(from >= 0 && told.length > 1000);
    t.equal(told, whole.slice(from, from + told.length));
  });
