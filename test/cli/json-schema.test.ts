// Whatever a command prints with --json in any test is held to docs/json.schema.json (test/support/in-process.ts). Here is what
// few tests run, or --whole alone.
import { join } from 'node:path';
import t from 'tap';
import { elfPath } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { wrongJson } from '../support/json-schema.js';
import { pollsProgram } from '../support/native.js';

t.test('commands that have an object of their own', async (t) => {
  const [trace, other, budget] = ['a.pftrace', 'b.pftrace', 'b.json'].map((name) => join(scratchFolder(t), name)) as [
    string,
    string,
    string,
  ];
  const program = pollsProgram(t, 'orders');
  const lines: readonly (readonly string[])[] = [
    ['run', '--json', '-o', trace, '-p', 'poll:**', '-p', 'fn:orders::**', program, '--', '20'],
    ['graph', '--json', trace],
    ...['latency', 'await'].map((by) => ['diff', '--json', '--by', by, trace, trace]),
    ['check', '--json', '--update', '--budget', budget, trace],
    ['convert', '--json', '-o', other, trace],
    ['tasks', '--json', '--at', '10ms', trace],
    ['doctor', '--json', '--trampolines', '-p', 'poll:level3', elfPath('rv-o2')],
  ];
  for (const line of lines) t.match((await rsptrace(...line).ended).stdout, /^\{/, line.join(' '));
});

t.test('what is wrong is seen', (t) => {
  const wrong = (value: object): number => wrongJson(['types', '--json'], JSON.stringify(value)).length;
  t.ok(wrong({ version: 2 }) > 0);
  t.ok(wrong({ version: 1, more: 1 }) > 0);
  t.ok(wrongJson(['futures', '--json'], '{"version":1}').length > 0, 'what is always there is missing');
  t.ok(wrongJson(['info', '--json'], '{"version":1,"error":{"code":1}}').length > 0);
  t.ok(wrongJson(['bt', '--json'], '{"version":1,"error":{"code":"A_B","message":"m","more":1}}').length > 0);
  t.same(wrongJson(['info'], 'no JSON'), []);
  t.end();
});
