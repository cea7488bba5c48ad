// Makes the JavaScript of dist/, in few files, because one file starts several times as fast as four hundred:
//   cli/main.js                the command line
//   index.js, ROOM/index.js    the library's entries
//   cli/chunk-*.js             what several of these need
//   cli/help/*.txt             the pages of --help: src/cli/help-pages.ts
//   cli/LICENSES.txt           of the packages that are in the bundle
// The other packages are installed by npm: those with WebAssembly, and what only few commands load.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import { withViewer } from './viewer.mjs';

const root = join(import.meta.dirname, '..');
const out = join(root, 'dist/cli');
const { dependencies, exports, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const bundled = ['yargs', 'hyparquet-writer', 'string-width'];

/** Of an index.ts: for each name that it passes on, the file it comes from and its name there. */
const passedOn = (index) => {
  const names = new Map();
  for (const [, list, from] of readFileSync(index, 'utf8').matchAll(/^export \{([^}]*)\} from '([^']+)'/gm))
    for (const name of values(list)) {
      const [there, here = there] = name.split(' as ');
      names.set(here, { file: resolve(dirname(index), from.replace(/\.js$/, '.ts')), there });
    }
  return names;
};
const values = (list) =>
  list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type '));

/** Where a name that is imported comes from, through one index.ts or several. */
function origin(file, name) {
  const found = file.endsWith('/index.ts') ? passedOn(file).get(name) : undefined;
  return found ? origin(found.file, found.there) : { file, there: name };
}

/**
 * Imports through an index.ts become imports of the files behind it. Otherwise esbuild takes all that an index.ts
 * names for needed wherever it is imported, and every command loads every other.
 */
const pastIndexes = {
  name: 'past-indexes',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      const contents = text.replace(/^import \{([^}]*)\} from '(\.[^']*\/index)\.js';/gm, (_, list, from) =>
        values(list)
          .map((name) => {
            const [wanted, here = wanted] = name.split(' as ');
            const { file, there } = origin(`${resolve(dirname(path), from)}.ts`, wanted);
            return `import { ${there} as ${here} } from '${file}';`;
          })
          .join(' '),
      );
      return { contents, loader: 'ts' };
    });
  },
};

/**
 * Of `cli/`, a supervisor runs `clean-up`, and tests and this script load the last four; benchmarks load the files of
 * other rooms.
 */
const alone = [
  ...['cli/main', 'cli/clean-up', 'cli/command-line', 'cli/failure', 'cli/help-pages', 'cli/reading-line'],
  ...['api/qemu', 'base/refusal', 'profile/sampling'],
].map((name) => `src/${name}.ts`);
/** package.json exports some of them; benchmarks load others. */
const rooms = ['.', 'async', 'target']
  .flatMap((folder) => readdirSync(join(root, 'src', folder)).map((name) => join(folder, name)))
  .filter((room) => existsSync(join(root, 'src', room, 'index.ts')));

const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: [...alone, ...rooms.map((room) => `src/${room}/index.ts`), 'src/index.ts'],
  outbase: 'src',
  outdir: 'dist',
  chunkNames: 'cli/[name]-[hash]',
  bundle: true,
  splitting: true,
  metafile: true,
  minifyWhitespace: true,
  minifySyntax: true,
  external: Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !bundled.includes(name)),
  platform: 'node',
  target: 'node20',
  format: 'esm',
  logLevel: 'warning',
  plugins: [withViewer([pastIndexes]), pastIndexes],
});

// What reads a saved trace loads nothing of targets: that would double its start.
const loads = (output, seen = new Set()) => {
  if (seen.has(output)) return seen;
  seen.add(output);
  for (const { path, kind } of metafile.outputs[output]?.imports ?? [])
    if (kind === 'import-statement') loads(path, seen);
  return seen;
};
for (const [output, { entryPoint }] of Object.entries(metafile.outputs)) {
  if (!/^src\/cli\/(report|info|replay|check|diff|open)\.ts$/.test(entryPoint ?? '')) continue;
  const parts = [...loads(output)].flatMap((one) => Object.keys(metafile.outputs[one]?.inputs ?? {}));
  const foreign = parts.find((input) => /^src\/(arch|inject|stop|dwarf)\//.test(input));
  if (foreign !== undefined) throw new Error(`${entryPoint} loads ${foreign}: import what it needs from another file`);
}

// Declarations that no entry of the library leads to serve nobody.
const declared = new Set();
const declare = (file) => {
  if (declared.has(file)) return;
  declared.add(file);
  for (const [, from] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)\.js'/g))
    declare(resolve(dirname(file), `${from}.d.ts`));
};
for (const { types } of Object.values(exports)) declare(join(root, types));
for (const file of readdirSync(join(root, 'dist'), { recursive: true }).map((name) => join(root, 'dist', name)))
  if (file.endsWith('.d.ts') && !declared.has(file)) rmSync(file);

const { commandNames, helpText } = await import(join(out, 'command-line.js'));
const { pageName, pageWidths } = await import(join(out, 'help-pages.js'));
mkdirSync(join(out, 'help'), { recursive: true });
for (const command of [undefined, ...commandNames])
  for (const width of pageWidths)
    writeFileSync(join(out, pageName(command, width)), `${await helpText(command, width)}\n`);

const packages = new Set();
for (const input of Object.keys(metafile.inputs)) {
  const found = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input);
  if (found) packages.add(found[0]);
}
const licence = (folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const file = readdirSync(join(root, folder)).find((one) => /^licen[cs]e/i.test(one));
  if (file === undefined) throw new Error(`${name} is bundled and has no file with its licence`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(root, folder, file), 'utf8').trim()}\n`;
};
writeFileSync(
  join(out, 'LICENSES.txt'),
  [...packages]
    .sort()
    .map(licence)
    .join(`\n${'-'.repeat(80)}\n\n`),
);
