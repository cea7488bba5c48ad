// Makes JavaScript of the test files, all at once before they run: loading TypeScript takes seconds of CPU a file.
// What several files import is shared. Where a source asks where it stands, its own place in the repository is put in.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { schemaCode } from './schema-of-tests.mjs';
import { withViewer } from './viewer.mjs';

const root = join(import.meta.dirname, '..');

const ownPlace = {
  name: 'own-place',
  setup({ onLoad }) {
    onLoad({ filter: /\.m?[jt]s$/ }, ({ path }) => {
      const places = { dirname: dirname(path), filename: path, url: pathToFileURL(path).href };
      const text = readFileSync(path, 'utf8');
      const contents = text.replace(/\bimport\.meta\.(dirname|filename|url)\b/g, (_, of) => JSON.stringify(places[of]));
      return { contents, loader: path.endsWith('ts') ? 'ts' : 'js' };
    });
  },
};

/** What nearly every test imports: its source, and its file. tap alone is three hundred files. */
const packages = {
  'fast-check': { from: './scripts/fast-check-of-tests.mjs', to: 'index' },
  'json-schema': { from: 'json-schema', to: 'index' },
  // tap leaves its own frames out of stacks: those of files in a folder of this name.
  tap: { from: './scripts/tap-of-file.mjs', to: 'node_modules/@tapjs/index' },
};

const schema = {
  name: 'schema',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^json-schema$/ }, ({ path }) => ({ path, namespace: 'schema' }));
    onLoad({ filter: /./, namespace: 'schema' }, () => ({ contents: schemaCode(root), resolveDir: root }));
  },
};

/** Makes one file of each of these packages, in a `node_modules` that the tests in `out` find first. */
async function bundlePackages(out) {
  const folder = join(out, 'node_modules');
  const required = "import { createRequire as of } from 'node:module'; const require = of(import.meta.url);";
  await build({
    absWorkingDir: root,
    entryPoints: Object.entries(packages).map(([name, { from, to }]) => ({ in: from, out: join(name, to) })),
    outdir: folder,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'warning',
    // For what is CommonJS in them.
    banner: { js: required },
    plugins: [schema, ownPlace],
  });
  for (const [name, { to }] of Object.entries(packages))
    writeFileSync(join(folder, name, 'package.json'), JSON.stringify({ type: 'module', main: `${to}.js` }));
}

/** A folder that goes when this process ends. */
function passingFolder() {
  mkdirSync(join(root, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, '.cache/tests-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Bundles `files`, paths from the root, into `out`; gives for each where its JavaScript is. */
export async function bundleTests(files, out = passingFolder()) {
  const ready = bundlePackages(out);
  await build({
    absWorkingDir: root,
    entryPoints: files,
    outdir: out,
    outbase: root,
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: true,
    logLevel: 'warning',
    plugins: [withViewer(), ownPlace],
  });
  await ready;
  return files.map((file) => join(out, file.replace(/\.m?[jt]s$/, '.js')));
}

// As a command: scripts/bundle-tests.mjs FOLDER FILE...
if (process.argv[1] === import.meta.filename) {
  const [folder, ...files] = process.argv.slice(2);
  await bundleTests(files, join(root, folder));
}
