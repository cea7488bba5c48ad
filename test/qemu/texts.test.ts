// The texts that a kernel's console is given, read without stops: together they are what the console printed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { elfPath, qemuArgv } from './guests/guests.js';

for (const name of ['rv-o2', 'x86-o2'])
  t.test(`${name}: the texts of all calls are the console's`, async (t) => {
    const folder = scratchFolder(t);
    const [calls, printed] = [join(folder, 'calls.txt'), join(folder, 'console.txt')];
    const options = ['--engine', 'target', '-p', 'fn:**write_str', '-o', calls, '--console', printed];
    const { status, stderr } = await rsptrace('run', ...options, elfPath(name), '--', ...qemuArgv(name)).ended;
    t.equal(status, 0, stderr.slice(-300));
    const texts = [...readFileSync(calls, 'utf8').matchAll(/write_str\(s: (".*?")\)(?= = | \{|$)/gm)];
    const told = texts.map(([, text = '']) => JSON.parse(text) as string).join('');
    const whole = readFileSync(printed, 'utf8').replaceAll('\r', '');
    const from = whole.indexOf('LAB boot');
    t.ok(from >= 0 && told.length > 1000);
    t.equal(told, whole.slice(from, from + told.length));
  });
