#!/usr/bin/env node
// The stack of RSPTRACE_STACK=1 on stdin, with the lines of src/ that it is of: `code-HASH.cjs:LINE:COLUMN` is looked
// up in what `npm run build` of the same commit has written, which has the same HASH.
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist/cli');
const maps = new Map();

function mapOf(name) {
  if (!maps.has(name)) maps.set(name, new SourceMap(JSON.parse(readFileSync(join(folder, `${name}.map`), 'utf8'))));
  return maps.get(name);
}

const text = readFileSync(0, 'utf8').replace(/[^\s(]*(code-\w+\.cjs):(\d+):(\d+)/g, (_, name, line, column) => {
  const { originalSource, originalLine, originalColumn } = mapOf(name).findEntry(line - 1, column - 1);
  return `${relative(root, join(folder, originalSource))}:${originalLine + 1}:${originalColumn + 1}`;
});
process.stdout.write(text);
