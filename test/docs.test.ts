// Every link between pages leads somewhere, every file that a page names is there, and so is every option.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { commandNames, optionsOf } from '../src/cli/command-line.js';

const root = join(import.meta.dirname, '..');
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** GitHub's: lower case, spaces to hyphens, punctuation gone. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

/** Without what stands between fences. */
const prose = (page: string) => readFileSync(join(root, page), 'utf8').replace(/^ *```.*?^ *```$/gms, '');

function anchors(page: string): Set<string> {
  return new Set([...prose(page).matchAll(/^#+ (.*)$/gm)].map((match) => anchorOf(match[1] ?? '')));
}

t.test('every link between pages resolves, to the heading', async (t) => {
  let links = 0;
  for (const page of pages) {
    for (const match of prose(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      const target = match[1] ?? '';
      if (/^[a-z]+:/.test(target)) continue;
      links++;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : join(dirname(page), path);
      if (!existsSync(join(root, file))) t.fail(`${page}: ${target} does not exist`);
      else if (anchor !== undefined && !anchors(file).has(anchor)) t.fail(`${page}: ${file} has no heading #${anchor}`);
    }
  }
  t.ok(links > 100, `${links} links`);
});

t.test('every file that ARCHITECTURE.md and docs name exists', async (t) => {
  // Files that commands write, or that a reader has.
  const examples = /^(trace|crate|kernel|calls|src\/(main|work|net))\b/;
  let files = 0;
  for (const page of pages) {
    if (page === 'CHANGELOG.md') continue;
    for (const match of prose(page).matchAll(/`((?:\.\/)?[\w.-]+(?:\/[\w.-]+)*\.(?:ts|mjs|c|py|rs))`/g)) {
      const name = match[1] ?? '';
      if (examples.test(name)) continue;
      files++;
      // rooms.md has a table of the files of one folder, by their names alone.
      const found = [name, join('src', name), join('src/inject', name)].some((path) => existsSync(join(root, path)));
      if (!found) t.fail(`${page}: ${name} does not exist`);
    }
    for (const match of prose(page).matchAll(/(?<![\w/.])((?:scripts|docs|test)\/[\w./-]*\w)/g)) {
      files++;
      if (!existsSync(join(root, match[1] ?? ''))) t.fail(`${page}: ${match[1]} does not exist`);
    }
  }
  t.ok(files > 50, `${files} files`);
});

t.test("the pages' tables have the options that commands declare", async (t) => {
  const commands = [undefined, ...commandNames];
  const tables = commands.flatMap((name) => Object.entries(optionsOf(name)));
  const declared = new Map(tables.map(([name, { alias }]) => [name, alias]));
  const named = new Set<string>();
  for (const page of pages) {
    for (const [, cell = ''] of prose(page).matchAll(/^\| (`-.*?) \|/gm)) {
      for (const [, option = ''] of cell.matchAll(/`(?:-\w, )?--(?:no-)?([a-z-]+)/g)) {
        if (!declared.has(option)) t.fail(`${page}: there is no option --${option}`);
        named.add(option);
      }
    }
  }
  t.ok(named.size > 50, `${named.size} options in tables`);
  const all = pages.map(prose).join('\n');
  for (const [option, alias] of declared) {
    const isNamed = new RegExp(`--(?:no-)?${option}\\b`).test(all) || all.includes(`\`-${alias}\``);
    if (!isNamed) t.fail(`no page names --${option}`);
  }
});
