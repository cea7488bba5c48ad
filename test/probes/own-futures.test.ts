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
