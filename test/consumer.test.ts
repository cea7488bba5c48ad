// The package as npm packs it, in a project of somebody else's: its declarations compile, strictly, without the types of Node.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { scratchFolder } from './support/command.js';
import { long } from './support/long.js';

const root = join(import.meta.dirname, '..');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, { readonly types: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
};

/** Version 7 takes a quarter of the time of 6. */
const compiler = join(root, 'node_modules', long ? '.bin/tsc' : 'typescript-7/bin/tsc');

const program = `
import { attach, type CallHit, launch, type PlainValue, Unavailable } from 'rsptrace';
import { layoutOf } from 'rsptrace/dwarf';
import { alignedTo, alignOf, closableState, headerRuntime, isCounted } from 'rsptrace/tasks';

await using target = await attach(':1234', 'kernel.elf');
const values: PlainValue[] = [];
target.probe('fn:labkern::work::deep0', { capture: ['n'] }, (hit: CallHit) => void values.push(hit.values.n ?? 0));
const probe = target.probe('poll:**', {
  onReturn(hit, { result, chain }, duration) {
    const texts: string[] = [hit.task.future.future, result, ...chain.map(({ typeName }) => typeName)];
    values.push(texts.join(), duration, hit.future.line ?? new Unavailable('no line'));
  },
});
target.probe('fn:x', { onReturn: (hit, result: PlainValue) => values.push(result, hit.function.name) });
// @ts-expect-error a function's hit has no task
target.probe('fn:x', (hit) => hit.task);
const { end } = await target.run({ duration: '10s', until: 'main', maxEvents: 5, signal: AbortSignal.timeout(5) });
const { tasks } = await target.tasks();
const [hart] = await target.backtraces();
const paths = { header: 'own::Header', vtable: 'own::Vtable', entry: 'run', function: 'own::run' };
const bits = { SCHEDULED: 1n, RUNNING: 2n, COMPLETED: 4n, CLOSED: 8n, HANDLE: 16n };
const runtime = headerRuntime({
  ...{ name: 'own', wakers: /^own::wake/, polls: /^own::run$/, ...paths },
  futureAt({ debug }, generics) {
    const [header, future] = [debug.typesNamed(paths.header)[0], generics.get('F')];
    return header && future && alignedTo(layoutOf(header).size, alignOf(future));
  },
  read(word) {
    const { isOver, words } = closableState(word('state') ?? 0n, bits);
    return isCounted(word('references') ?? 0n) ? { isOver, state: words.join() } : undefined;
  },
});
await attach(':1234', 'kernel.elf', { runtimes: [runtime] });
export const all = [end, tasks.length, hart?.stack.frames.length, probe.engine, probe.reason, launch];
`;

t.test('a project that uses every entry', (t) => {
  const folder = scratchFolder(t);
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], { cwd: root });
  const packed = readdirSync(folder).find((file) => file.endsWith('.tgz')) ?? '';
  t.ok(statSync(join(folder, packed)).size < 1_150_000, 'at most 1.15 MB');
  execFileSync('tar', ['xzf', packed], { cwd: folder });
  renameSync(join(folder, 'package'), join(modules, 'rsptrace'));
  for (const name of Object.keys(manifest.dependencies)) {
    if (name.includes('/')) mkdirSync(join(modules, name, '..'), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  const entries = Object.keys(manifest.exports).map((entry) => entry.replace(/^\./, 'rsptrace'));
  const imports = entries.map((entry, index) => `import * as e${index} from '${entry}';`);
  writeFileSync(join(folder, 'main.ts'), program);
  writeFileSync(
    join(folder, 'entries.ts'),
    `${imports.join('\n')}\nexport default [${imports.map((_, i) => `e${i}`)}];\n`,
  );
  const compilerOptions = {
    ...{
      strict: true,
      skipLibCheck: false,
      skipDefaultLibCheck: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      types: [],
    },
    ...{ module: 'nodenext', target: 'es2023', lib: ['es2023', 'dom', 'esnext.disposable'] },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts', 'entries.ts'] }));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  t.ok(entries.length >= 11, entries.join());
  t.equal(compile(folder), '');
  const loaded = `${imports.join('')}console.log([${imports.map((_, i) => `Object.keys(e${i}).length`)}].every((n) => n > 0));`;
  writeFileSync(join(folder, 'load.js'), loaded);
  t.equal(
    execFileSync(process.execPath, ['load.js'], { cwd: folder, encoding: 'utf8' }),
    'true\n',
    'every entry loads',
  );
  t.end();
});

t.test('pages are made of the declarations, and each link leads to one', (t) => {
  const folder = scratchFolder(t);
  const typedoc = join(root, 'node_modules/.bin/typedoc');
  execFileSync(typedoc, ['--out', folder, '--logLevel', 'Warn'], { cwd: root, stdio: 'pipe' });
  t.match(readFileSync(join(folder, 'functions/index.attach.html'), 'utf8'), /RSP_CONNECT|ELF_/);
  t.ok(readFileSync(join(folder, 'modules/rsp.html'), 'utf8').includes('Session'));
  t.end();
});

/** What the compiler says. */
function compile(folder: string): string {
  try {
    return execFileSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8' });
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}
