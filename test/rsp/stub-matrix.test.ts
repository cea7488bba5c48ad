import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { StubRow } from '../support/stub-row.js';
import { stubScenario } from '../support/stub-scenario.js';
import { stubServers, whyNoRr } from '../support/stub-servers.js';
import { stubTable, withoutRates } from '../support/stub-table.js';

const document = join(import.meta.dirname, '../../docs/internals/stubs.md');
const rows: StubRow[] = [];

for (const server of stubServers) {
  t.test(server.name, async (t) => {
    rows.push(await stubScenario(t, server));
  });
}

t.test('whether rr could record here', async (t) => {
  const why = whyNoRr();
  t.comment(why === undefined ? 'rr could run here, and is not tried' : `rr is not runnable here: ${why}`);
});

t.test('docs/internals/stubs.md says what was seen', async (t) => {
  const written = stubTable(rows);
  if (process.env.UPDATE_DOCS === '1') writeFileSync(document, written);
  t.equal(withoutRates(readFileSync(document, 'utf8')), withoutRates(written), 'UPDATE_DOCS=1 writes it anew');
});
