// docs/json.schema.json names every field that commands print with --json. That these are of its kinds each test sees that
// runs a command (test/support/in-process.ts).
import { join } from 'node:path';
import t from 'tap';
import { elfPath } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { wrongJson } from '../support/json-schema.js';
import { pollsProgram } from '../support/native.js';

t.test('no field that the schema does not name', async (t) => {
  const trace = join(scratchFolder(t), 'orders.pftrace');
  const other = join(scratchFolder(t), 'other.pftrace');
  const program = pollsProgram(t, 'orders');
  const lines: readonly (readonly string[])[] = [
    ['run', '--json', '-o', trace, '-p', 'poll:**', '-p', 'fn:orders::**', program, '--', '20'],
    ['run', '--json', '--dry-run', program],
    ['info', '--json', trace],
    ['report', '--json', trace],
    ...['fn', 'future', 'task', 'thread', 'await', 'latency'].map((by) => ['report', '--json', '--by', by, trace]),
    ['report', '--json', '--callees', 'orders::**', trace],
    ['replay', '--json', trace],
    ['graph', '--json', trace],
    ['diff', '--json', trace, trace],
    ...['latency', 'await'].map((by) => ['diff', '--json', '--by', by, trace, trace]),
    ['check', '--json', '--update', '--budget', join(scratchFolder(t), 'b.json'), trace],
    ['convert', '--json', '-o', other, trace],
    ['profile', '--off-cpu', '--json', trace],
    ['tasks', '--json', '--at', '10ms', trace],
    ['futures', '--json', elfPath('rv-o2')],
    ['types', '--json', elfPath('rv-o2'), 'labkern::exec::Task'],
    ['doctor', '--json', '--trampolines', '-p', 'poll:level3', elfPath('rv-o2')],
    ['bt', '--json'],
  ];
  for (const line of lines) {
    const { stdout } = await rsptrace(...line).ended;
    t.ok(stdout.startsWith('{'), line.join(' '));
    t.strictSame([...new Set(wrongJson(line, stdout, true))].slice(0, 5), [], line.slice(0, 3).join(' '));
  }
});

t.test('what is wrong is seen', (t) => {
  const wrong = (value: object): number => wrongJson(['types', '--json'], JSON.stringify(value), true).length;
  t.ok(wrong({ version: 2 }) > 0);
  t.ok(wrong({ version: 1, more: 1 }) > 0);
  t.ok(wrongJson(['info', '--json'], '{"version":1,"error":{"code":1}}').length > 0);
  t.same(wrongJson(['info'], 'no JSON'), []);
  t.end();
});
