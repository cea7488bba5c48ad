// The stubs' scenario, recorded and played back: the same at the recording as at the stub. Those that are kept in test/wire hold every
// quirk that docs/internals/stubs.md describes (UPDATE_WIRE=1 records them anew).
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import type { StubRow } from '../support/stub-row.js';
import { recordScenario, replayScenario } from '../support/stub-scenario.js';
import { type StubServer, stubServers, versionOf } from '../support/stub-servers.js';
import { stubTable, withoutRates } from '../support/stub-table.js';

const folder = join(import.meta.dirname, '../wire');
/** Two for each of four harts. */
const CALLS = 8;

/** `qemu-system-riscv64-smp-4-7.2.jsonl` */
const fileOf = ({ name, binary }: StubServer): string =>
  `${`${name} ${versionOf(binary)}`.replace(/[^\w.]+/g, '-')}.jsonl`;

const withoutRate = ({ hitsPerSecond, ...row }: StubRow): object => row;

// What is kept plays the others back; each of them is asked live in stub-matrix.test.ts.
for (const server of usually(stubServers, (one) => one === stubServers[0] || one.name === 'gdbserver')) {
  t.test(`${server.name} ${versionOf(server.binary)}: what is recorded is played back`, async (t) => {
    const kept = process.env.UPDATE_WIRE === '1';
    const path = join(kept ? folder : scratchFolder(t), fileOf(server));
    const live = await recordScenario(t, server, CALLS, path);
    // Where it listened is nobody's business.
    if (kept) writeFileSync(path, readFileSync(path, 'utf8').replace(/"remote":"[^"]*"/, '"remote":"stub"'));
    const replayed = await replayScenario(t, server, CALLS, path);
    t.same(withoutRate(replayed), withoutRate(live));
  });
}

t.test('the recordings in test/wire say what docs/internals/stubs.md says', async (t) => {
  const rows: StubRow[] = [];
  for (const server of stubServers) rows.push(await replayScenario(t, server, CALLS, join(folder, fileOf(server))));
  const document = readFileSync(join(import.meta.dirname, '../../docs/internals/stubs.md'), 'utf8');
  t.equal(withoutRates(stubTable(rows)), withoutRates(document));
});
