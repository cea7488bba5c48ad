// Makes the JavaScript of dist/:
//   cli/code-HASH.cjs          all of it, as one script: V8 keeps what it has compiled of one (src/cli/compiled.ts)
//   cli/code-HASH.cjs.map      what is where in it, for scripts/stack.mjs; not in the package
//   cli/main.js                the command line
//   index.js, ROOM/index.js    the library's entries, which pass on what that script has; of .d.ts what they lead to
//   cli/help/*.txt             the pages of --help: src/cli/help-pages.ts
//   man/*.1                    man pages: scripts/man-pages.mjs
//   settings.schema.json       of rsptrace.toml: src/cli/settings/schema.ts
//   cli/LICENSES.txt           of the packages that are in the bundle
// The other packages are installed by npm: those with WebAssembly, and what only few commands load.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';
import { pruneDeclarations } from './declarations.mjs';
import { writeManPages } from './man-pages.mjs';
import { withViewer } from './viewer.mjs';

const root = join(import.meta.dirname, '..');
const out = join(root, 'dist/cli');
const { dependencies, exports, optionalDependencies, version } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);
const bundled = ['yargs', 'hyparquet-writer', 'smol-toml', 'string-width'];

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
      // A script cannot import a module; compiled.ts does it for what is not in the script.
      const isModule = path.endsWith('/cli/compiled.ts');
      if (!isModule && /(?<!\b(?:await|typeof) )\bimport\((?!'\.)/.test(contents))
        throw new Error(`${path}: only \`await import(...)\` is made to work in a script`);
      return {
        contents: isModule ? contents : contents.replace(/\bawait import\((?!'\.)/g, 'await importModule('),
        loader: 'ts',
      };
    });
  },
};

/**
 * Of `cli/`, main.ts runs `start`, a supervisor `clean-up`, and tests and this script load the others; benchmarks load
 * the files of other rooms.
 */
const alone = [
  ...[
    'cli/start',
    'cli/clean-up',
    'cli/command-facts',
    'cli/command-line',
    'cli/failure',
    'cli/help-pages',
    'cli/reading-line',
    'cli/settings/schema',
  ],
  ...['api/qemu', 'profile/sampling'],
];
/** package.json exports some of them; benchmarks load others. */
const rooms = ['.', 'async', 'target']
  .flatMap((folder) => readdirSync(join(root, 'src', folder)).map((name) => join(folder, name)))
  .filter((room) => existsSync(join(root, 'src', room, 'index.ts')));
const parts = [...alone, ...rooms.map((room) => `${room}/index`), 'index'];

const common = {
  absWorkingDir: root,
  bundle: true,
  metafile: true,
  minifyWhitespace: true,
  minifySyntax: true,
  // Profiles of rsptrace itself want the names.
  minifyIdentifiers: process.env.RSPTRACE_NAMES === undefined,
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
};
const { metafile, outputFiles } = await build({
  ...common,
  stdin: {
    contents: `module.exports = { ${parts.map((name) => `'${name}': () => require('./src/${name}.ts')`)} }`,
    resolveDir: root,
  },
  write: false,
  outdir: out,
  sourcemap: 'external',
  sourcesContent: false,
  external: Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !bundled.includes(name)),
  format: 'cjs',
  define: { 'import.meta.url': 'ownUrl' },
  banner: { js: '(function(require,module,ownUrl,importModule){' },
  footer: { js: '})' },
  plugins: [withViewer([pastIndexes]), pastIndexes],
});
const [map, script] = outputFiles.sort((a, b) => b.path.length - a.path.length);
const hash = createHash('sha256').update(script.contents).digest('hex').slice(0, 16);
mkdirSync(out, { recursive: true });
for (const name of readdirSync(out)) if (/^code-.*\.cjs(\.map)?$/.test(name)) rmSync(join(out, name));
writeFileSync(join(out, `code-${hash}.cjs`), script.contents);
writeFileSync(join(out, `code-${hash}.cjs.map`), map.contents);

// What starts it is a file of its own.
await build({
  ...common,
  entryPoints: ['src/cli/main.ts', 'src/cli/compiled.ts'],
  outdir: out,
  splitting: true,
  format: 'esm',
  plugins: [pastIndexes],
});
const { part } = await import(join(out, 'compiled.js'));
for (const name of parts) {
  const file = join(root, 'dist', `${name}.js`);
  const from = relative(dirname(file), join(out, 'compiled.js'));
  const names = name === 'cli/clean-up' ? [] : Object.keys(part(name));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `import { part } from '${from.startsWith('.') ? from : `./${from}`}';\nexport const { ${names.join(', ')} } = part('${name}');\n`,
  );
}

const declarations = readdirSync(join(root, 'dist'), { recursive: true }).filter((name) => name.endsWith('.d.ts'));
if (declarations.length > 0)
  pruneDeclarations(
    Object.values(exports).map(({ types }) => join(root, types)),
    declarations.map((name) => join(root, 'dist', name)),
  );

const { commandNames, helpText } = await import(join(out, 'command-line.js'));
const { pageName, pageWidths } = await import(join(out, 'help-pages.js'));
mkdirSync(join(out, 'help'), { recursive: true });
for (const command of [undefined, ...commandNames])
  for (const width of pageWidths)
    writeFileSync(join(out, pageName(command, width)), `${await helpText(command, width)}\n`);

const { factsOf } = await import(join(out, 'command-facts.js'));
writeManPages(join(root, 'dist/man'), { commandNames, factsOf, version, docs: join(root, 'docs') });

const { settingsSchema } = await import(join(out, 'settings/schema.js'));
writeFileSync(join(root, 'dist/settings.schema.json'), `${JSON.stringify(settingsSchema(), null, 1)}\n`);

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
