// rsptrace without a part of its own, as a bundle or a pruned container may leave it: an error that names the part, never fewer results.
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t, { type Test } from 'tap';
import { elfPath } from '../qemu/guests/guests.js';
import { scratchFolder, start } from '../support/command.js';

const home = resolve(import.meta.dirname, '../..');
/** Packages whose files are left out: copies, not links to the project's own. */
const copied = ['gecko-profiler-demangle', 'capstone-wasm', '@viz-js'];

/** An installation of its own; packages that nobody touches are the project's. */
function installed(t: Test): string {
  const folder = scratchFolder(t);
  mkdirSync(join(folder, 'node_modules'));
  for (const name of readdirSync(join(home, 'node_modules'))) {
    if (!name.startsWith('.') && !copied.includes(name))
      symlinkSync(join(home, 'node_modules', name), join(folder, 'node_modules', name));
  }
  for (const name of copied)
    cpSync(join(home, 'node_modules', name), join(folder, 'node_modules', name), { recursive: true });
  cpSync(join(home, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(home, 'package.json'), join(folder, 'package.json'));
  return folder;
}

t.test('each part', async (t) => {
  const folder = installed(t);
  const run = (...args: string[]) => start(process.execPath, [join(folder, 'dist/cli/main.js'), ...args]).ended;
  const futures = ['futures', '--json', elfPath('rv-o2')];
  const whole = await run(...futures);
  t.equal(JSON.parse(whole.stdout).futures.length, 33, 'with all of them it works');
  const bt = ['bt', '--remote', ':1', elfPath('x86-o2')];
  const svg = ['futures', elfPath('rv-o2'), '--svg'];
  const missing: [path: string, named: RegExp, args: string[]][] = [
    ['@viz-js/viz', /--dot writes it: the package @viz-js\/viz/, svg],
    ['capstone-wasm/dist/capstone.wasm', /x86_64 code cannot be decoded: the package capstone-wasm/, bt],
    ['capstone-wasm', /x86_64 code cannot be decoded: the package capstone-wasm/, bt],
    [
      'gecko-profiler-demangle/index_bg.wasm',
      /names cannot be demangled: the package gecko-profiler-demangle/,
      futures,
    ],
    ['gecko-profiler-demangle', /not installed completely: the package gecko-profiler-demangle/, futures],
  ];
  for (const [path, named, args] of missing) {
    // Emptied rather than removed: Node looks for what is not there in the folders around, too.
    const part = join(folder, 'node_modules', path);
    rmSync(part, { recursive: true });
    if (path.endsWith('.wasm')) writeFileSync(part, '');
    else mkdirSync(part);
    const { status, stdout, stderr } = await run(...args);
    t.equal(status, 1, path);
    t.match(stderr, named);
    t.match(stderr, /\[PART_MISSING\]\n {2}install rsptrace with all its packages \(npm ci\)/);
    t.equal(stdout.includes('"futures":'), false, 'and no results');
  }
});
