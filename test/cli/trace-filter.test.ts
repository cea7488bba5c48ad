// `--filter`: members of arguments, as values are printed.
import t from 'tap';
import { parseFilter, selectionOf } from '../../src/cli/trace-filter.js';
import type { AnyBegin } from '../../src/trace/index.js';
import { formatValue } from '../../src/values/index.js';
import type { Value } from '../../src/values/value.js';

const int = (value: bigint): Value => ({ kind: 'integer', value }) as Value;
const token = {
  ...{ kind: 'struct', name: 'Token', form: 'struct' },
  fields: [
    { name: 'open', value: { kind: 'char', value: '(' } },
    { name: 'quote', value: { kind: 'char', value: "'" } },
    { name: 'text', value: { kind: 'text', text: 'a "]", b', cut: false } },
    { name: 'id', value: int(3n) },
  ],
} as unknown as Value;
const list = { kind: 'sequence', name: 'Vec', elements: [int(7n), int(8n)], length: 2 } as unknown as Value;

t.test('members are found behind brackets in characters and texts, and behind facts', (t) => {
  const named = { tok: formatValue(token), list: formatValue(list) };
  const call = {
    ...{ type: 'call-begin', function: { name: 'lex' } },
    arguments: Object.entries(named).map(([name, value]) => ({ name, value })),
  } as unknown as AnyBegin;
  const holds = (condition: string) => selectionOf(parseFilter(`lex if ${condition}`)).holds?.(call, undefined);
  for (const condition of ['tok.id == 3', "tok.open == '('", 'list.0 == 7', 'list.1 == 8'])
    t.equal(holds(condition), true, `${condition} of ${named.tok}, ${named.list}`);
  for (const condition of ['tok.id == 4', 'tok.b == 1', 'list.2 == 8']) t.equal(holds(condition), false, condition);
  t.end();
});
