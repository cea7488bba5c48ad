// A program with the paths of one that `cargo install` made: what is probed by default is what it is in a program of one's own.
import t from 'tap';
import { rsptrace } from '../support/command.js';
import { pollsProgram } from '../support/native.js';

async function probed(name: 'polls' | 'installed') {
  const ran = await rsptrace('run', '--dry-run', pollsProgram(t, name)).ended;
  t.equal(ran.status, 0, ran.stderr);
  return [...new Set(ran.stdout.match(/polls::[\w:{}#]+|installed::[\w:{}#]+/g))]
    .map((each) => each.replace(/^\w+/, ''))
    .sort();
}

t.test('the Futures of a program that came from a registry', async (t) => {
  const own = await probed('polls');
  t.ok(own.length > 3, `${own.length}`);
  t.strictSame(await probed('installed'), own);
});

interface DryRun {
  readonly coverage: { readonly futures: readonly { readonly future: string }[] };
}

// Of some of smol's Futures the debug info has only the type, without a file.
t.test('no Future of a library is among them', async (t) => {
  const { futures } = (await rsptrace('run', '--dry-run', '--json', pollsProgram(t, 'live-smol-o3')).json<DryRun>())
    .coverage;
  t.strictSame([...new Set(futures.map(({ future }) => future.split('::')[0]))].sort(), [
    'coverage',
    'coverage_program',
  ]);
});
