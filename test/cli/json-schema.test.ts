// Whatever a command prints with --json in any test is held to docs/json.schema.json (test/support/in-process.ts).
import t from 'tap';
import { wrongJson } from '../support/json-schema.js';

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
