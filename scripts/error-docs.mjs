#!/usr/bin/env node
// Makes docs/errors.md from src/base/error-codes.ts, and holds both to the truth.
//
//   scripts/error-docs.mjs           exits 1 when docs/errors.md is not what the table says, or a code is never thrown
//   scripts/error-docs.mjs --write   writes docs/errors.md
//
// That every code that is thrown stands in the table, the type `ErrorCode` sees to.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';

const root = resolve(import.meta.dirname, '..');
const tablePath = join(root, 'src', 'base', 'error-codes.ts');
const pagePath = join(root, 'docs', 'errors.md');

/** Prefixes of codes, and what those are about, in the order of the page. */
const groups = [
  [['RSP'], 'The stub and the connection to it'],
  [['RUN', 'ATTACH', 'GDBSERVER'], 'Programs and processes'],
  [['ELF', 'DWARF', 'INPUT', 'ARCH'], 'The program and its debug info'],
  [['PROBE', 'WATCH', 'EXPRESSION'], 'Probes'],
  [['SCRATCH', 'TARGET'], 'The target'],
  [['TRACE', 'BUDGET', 'OUTPUT', 'CORE', 'FUTURES', 'SVG'], 'Files'],
];

const { errorCodes } = await import(`data:text/javascript,${encodeURIComponent(javaScriptOf(tablePath))}`);
const problems = [];
const page = pageOf(errorCodes);
if (process.argv.includes('--write')) writeFileSync(pagePath, page);
else if (read(pagePath) !== page) problems.push('docs/errors.md is not up to date: run scripts/error-docs.mjs --write');

const thrown = codesIn(join(root, 'src'));
for (const code of Object.keys(errorCodes)) {
  if (!thrown.has(code)) problems.push(`${code} is thrown nowhere: take it out of src/base/error-codes.ts`);
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`docs/errors.md tells of all ${Object.keys(errorCodes).length} codes, and each is thrown`);

function javaScriptOf(path) {
  return ts.transpileModule(readFileSync(path, 'utf8'), { compilerOptions: { module: ts.ModuleKind.ESNext } })
    .outputText;
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** String literals that become a code: all but those that a code is only compared with. */
function codesIn(folder) {
  const found = new Set();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !entry.name.endsWith('.ts') || path === tablePath) continue;
    const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
    (function visit(node) {
      if (ts.isStringLiteralLike(node) && !isCompared(node)) found.add(node.text);
      ts.forEachChild(node, visit);
    })(source);
  }
  return found;
}

/** `code === 'X'`, `isCode(error, 'X')`, `new Set(['X'])` and the type `'X'` throw nothing. */
function isCompared(literal) {
  const { parent } = literal;
  if (ts.isCallExpression(parent)) return /^(?:is|has)[A-Z]?/.test(parent.expression.getText());
  return ts.isBinaryExpression(parent) || ts.isArrayLiteralExpression(parent) || ts.isLiteralTypeNode(parent);
}

function pageOf(codes) {
  const names = Object.keys(codes).sort();
  const groupOf = (name) => groups.find(([prefixes]) => prefixes.includes(name.split('_')[0]));
  const sections = groups.map((group) =>
    section(
      group[1],
      names.filter((name) => groupOf(name) === group),
      codes,
    ),
  );
  return [
    '# Errors',
    '',
    '<!-- Made by scripts/error-docs.mjs from src/base/error-codes.ts: change it there. -->',
    '',
    'The code stands in brackets behind the sentence of an error, and in `error.code` of `--json`. Exit status: [record.md](record.md#exit-status).',
    '',
    'A program that uses the library throws codes of its own with a colon: `new RsptraceError("my-runtime:NO_TASKS", ...)`.',
    '',
    ...sections,
    section(
      'All others',
      names.filter((name) => groupOf(name) === undefined),
      codes,
    ),
  ].join('\n');
}

function section(title, names, codes) {
  if (names.length === 0) problems.push(`no code belongs to "${title}"`);
  const rows = names.map((name) => `| \`${name}\` | ${cell(codes[name].means)} ${cell(codes[name].remedy)} |`);
  return [`## ${title}`, '', '| code | meaning and way out |', '|---|---|', ...rows, ''].join('\n');
}

function cell(text) {
  return text.replaceAll('|', '\\|');
}
