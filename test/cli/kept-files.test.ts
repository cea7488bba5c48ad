// What a command keeps for the next one changes nothing of its output: whole, damaged, of another version, met by two at
// once, or where nothing can be kept.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { elfPath } from '../qemu/guests/guests.js';
import { main, type Ran, scratchFolder, start } from '../support/command.js';

const dryRun = ['run', '--dry-run', '--json', '-p', 'poll:producer', elfPath('rv-o2')];

function ran(cache: string): Promise<Ran> {
  return start('env', [`RSPTRACE_CACHE=${cache}`, process.execPath, main, ...dryRun]).ended;
}

t.test('a second start prints what the first one did, whatever became of the files', async (t) => {
  const folder = join(scratchFolder(t), 'cache');
  const [plain, ...both] = await Promise.all([ran('off'), ran(folder), ran(folder)]);
  t.equal(plain.status, 0);
  t.ok(JSON.parse(plain.stdout).probes.length > 0);
  t.same(both, [plain, plain], 'two at once');
  const files = readdirSync(folder);
  t.match(files.join(' '), /-futures .*-names .*-scopes/);
  t.ok(files.some((name) => /^code-\w+\.cjs-.*-run-first$/.test(name)));
  t.notOk(
    files.some((name) => /\.[0-9a-f]{8}$/.test(name)),
    'no part is left',
  );
  const spoils = [
    (file: Buffer) => file.fill(~file.readUInt8(file.length - 9), file.length - 9, file.length - 8),
    (file: Buffer) => file.subarray(0, file.length - 8),
    (file: Buffer) => file.fill('rsptrace kept 0\n', 0, 16),
  ];
  for (const [i, name] of files.entries()) {
    const path = join(folder, name);
    writeFileSync(path, (spoils[i % spoils.length] as (typeof spoils)[0])(readFileSync(path)));
  }
  t.same(await ran(folder), plain);
});

t.test('that nothing can be kept is said once', async (t) => {
  const { status, stderr } = await ran('/proc/rsptrace');
  t.equal(status, 0);
  t.match(stderr, /^rsptrace: nothing can be kept for the next start in \/proc\/rsptrace: ENOENT[^\n]*\n$/);
});
