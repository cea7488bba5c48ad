#!/usr/bin/env node
// Holds docs/errors.md to the truth: every code of src/base/error-codes.ts is thrown somewhere, and the page says in two
// sentences what it means and the way out. Exits 1 otherwise.
//
// That every code that is thrown stands among them, the type `ErrorCode` sees to.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';

const root = resolve(import.meta.dirname, '..');
const listPath = join(root, 'src', 'base', 'error-codes.ts');
const { outputText } = ts.transpileModule(readFileSync(listPath, 'utf8'), {
  compilerOptions: { module: ts.ModuleKind.ESNext },
});
const { errorCodes } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
const rows = readFileSync(join(root, 'docs', 'errors.md'), 'utf8').matchAll(/^\| `([A-Z][A-Z0-9_]+)` \| (.*) \|$/gm);
const said = new Map([...rows].map(([, code, text]) => [code, text]));
const thrown = codesIn(join(root, 'src'));
const problems = [
  ...errorCodes.filter((code) => !said.has(code)).map((code) => `docs/errors.md does not say what ${code} means`),
  ...errorCodes.filter((code) => !thrown.has(code)).map((code) => `${code} is thrown nowhere: take it out`),
  ...[...said.keys()].filter((code) => !errorCodes.includes(code)).map((code) => `docs/errors.md has ${code}, no code`),
  ...[...said].filter(([, text]) => !/^[A-Z`].*\. [A-Z`].*[.`]$/.test(text)).map(([code]) => `${code}: two sentences`),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`docs/errors.md tells of all ${errorCodes.length} codes, and each is thrown`);

/** String literals that become a code: all but those that a code is only compared with. */
function codesIn(folder) {
  const found = new Set();
  const anyCode = new RegExp(`['"\`](?:${errorCodes.join('|')})['"\`]`);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !entry.name.endsWith('.ts') || path === listPath) continue;
    const text = readFileSync(path, 'utf8');
    if (!anyCode.test(text)) continue;
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
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
