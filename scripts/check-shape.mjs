#!/usr/bin/env node
// Holds the size of what one person reads at once, and that nothing is exported for nobody. Exits 1 and names each place.
//   a file of src has at most 350 lines, a function 60, a class 10 fields;
//   functions, constants and classes that a file exports are imported by another one, or are part of the library.
// What was larger when these limits came stands in scripts/check-shape.json with its size. It may shrink; it may not grow.
//   scripts/check-shape.mjs [--write]     --write: keeps the sizes of today in that list, those that shrank alone
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';

const root = resolve(import.meta.dirname, '..');
const list = join(root, 'scripts/check-shape.json');
const LINES = 350;
const FUNCTION = 60;
const FIELDS = 10;
const write = process.argv.includes('--write');
const known = JSON.parse(readFileSync(list, 'utf8'));
const now = {};
const problems = [];

const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'src', 'test', 'examples', 'scripts'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((name) => /\.(ts|mjs)$/.test(name) && existsSync(join(root, name)));

/** Of a file: what it exports, and what it passes on of others. */
const exported = new Map();
/** `FILE NAME` of what some file imports; `FILE *` where it imports all. */
const imported = new Set();

function limit(place, size, most, unit) {
  if (size <= most) return;
  now[place] = size;
  if (size > (known[place] ?? most)) problems.push(`${place} has ${size} ${unit}, more than ${known[place] ?? most}`);
}

const named = (file, specifier) => {
  const path = resolve(dirname(file), specifier);
  return existsSync(path) ? path : path.replace(/\.js$/, '.ts');
};

/** Sizes of functions and classes. */
function measure(source, name, node) {
  const line = (position) => source.getLineAndCharacterOfPosition(position).line;
  if (ts.isFunctionLike(node) && node.body) {
    const called =
      node.name?.getText(source) ?? (ts.isVariableDeclaration(node.parent) && node.parent.name.getText(source));
    limit(`${name} ${called || 'function'}`, line(node.end) - line(node.getStart(source)) + 1, FUNCTION, 'lines');
  }
  if (ts.isClassLike(node)) {
    const fields = node.members.filter(
      (member) => ts.isPropertyDeclaration(member) && !ts.isArrowFunction(member.initializer ?? member),
    );
    limit(`${name} ${node.name?.text}`, fields.length, FIELDS, 'fields');
  }
  ts.forEachChild(node, (child) => measure(source, name, child));
}

function importsOf(file, node) {
  const text = (specifier) =>
    specifier && ts.isStringLiteral(specifier) && specifier.text.startsWith('.') ? specifier.text : undefined;
  const uses = (specifier, names) => {
    for (const each of names) imported.add(`${named(file, specifier)} ${each}`);
  };
  if (ts.isImportDeclaration(node) && text(node.moduleSpecifier)) {
    const bindings = node.importClause?.namedBindings;
    const names =
      bindings && ts.isNamedImports(bindings)
        ? bindings.elements.map((each) => (each.propertyName ?? each.name).text)
        : ['*'];
    uses(node.moduleSpecifier.text, node.importClause?.name ? [...names, 'default'] : names);
  } else if (
    ts.isCallExpression(node) &&
    node.expression.kind === ts.SyntaxKind.ImportKeyword &&
    text(node.arguments[0])
  ) {
    uses(node.arguments[0].text, ['*']);
  } else if (ts.isImportTypeNode(node) && text(node.argument.literal)) uses(node.argument.literal.text, ['*']);
  ts.forEachChild(node, (child) => importsOf(file, child));
}

function exportsOf(file, source) {
  const own = new Map();
  for (const node of source.statements) {
    const from = ts.isExportDeclaration(node) && node.moduleSpecifier && named(file, node.moduleSpecifier.text);
    if (ts.isExportDeclaration(node) && node.exportClause && ts.isNamedExports(node.exportClause))
      for (const each of node.exportClause.elements)
        own.set(each.name.text, from ? { from, there: (each.propertyName ?? each.name).text } : {});
    else if (from) own.set('*', { from, there: '*' });
    else if (node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) {
      // A type may be exported for the sake of those that are inferred from it.
      if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) continue;
      const names = ts.isVariableStatement(node)
        ? node.declarationList.declarations.map(({ name }) => name)
        : [node.name];
      for (const name of names) if (name && ts.isIdentifier(name)) own.set(name.text, {});
    }
  }
  exported.set(file, own);
}

for (const name of files) {
  const file = join(root, name);
  const text = readFileSync(file, 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  importsOf(file, source);
  exportsOf(file, source);
  if (!name.startsWith('src/')) continue;
  limit(name, text.split('\n').length - 1, LINES, 'lines');
  measure(source, name, source);
}

/** Marks what is wanted, through the files that pass it on. */
const wanted = new Set();
function want(file, name) {
  const key = `${file} ${name}`;
  if (wanted.has(key)) return;
  wanted.add(key);
  const own = exported.get(file);
  if (name === '*') for (const each of own?.keys() ?? []) want(file, each);
  const { from, there } = own?.get(name) ?? own?.get('*') ?? {};
  if (from) want(from, there === '*' ? name : there);
}
for (const key of imported) want(key.slice(0, key.lastIndexOf(' ')), key.slice(key.lastIndexOf(' ') + 1));
const library = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).exports;
for (const { types } of Object.values(library))
  want(join(root, types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts')), '*');
for (const [file, own] of exported) {
  if (!file.startsWith(join(root, 'src/')) || file.endsWith('.d.ts')) continue;
  for (const name of own.keys())
    if (!wanted.has(`${file} ${name}`)) problems.push(`${relative(root, file)} exports ${name}, which nobody imports`);
}

if (write) writeFileSync(list, `${JSON.stringify(Object.fromEntries(Object.entries(now).toSorted()), null, 2)}\n`);
else for (const problem of problems) console.error(problem);
if (!write && problems.length > 0) process.exit(1);
const larger = Object.keys(now).length;
console.log(`${files.length} files: ${larger} places are larger than the limits, as before or smaller`);
