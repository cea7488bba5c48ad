#!/usr/bin/env node
// The stack of RSPTRACE_STACK=1 on stdin, with the lines of src/ that it is of: `code-HASH.cjs:LINE:COLUMN` is looked
// up in what `npm run build` of the same commit has written, which has the same HASH.
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist/cli');
const maps = new Map();

function mapOf(name) {
  const path = join(folder, `${name}.map`);
  if (!existsSync(path)) {
    console.error(`stack.mjs: ${name} is of another build: check out the commit that it is of, and 'npm run build'`);
    process.exit(1);
  }
  if (!maps.has(name)) maps.set(name, new SourceMap(JSON.parse(readFileSync(path, 'utf8'))));
  return maps.get(name);
}

const text = readFileSync(0, 'utf8').replace(/[^\s(]*(code-\w+\.cjs):(\d+):(\d+)/g, (place, name, line, column) => {
  const { originalSource, originalLine, originalColumn } = mapOf(name).findEntry(line - 1, column - 1);
  if (originalSource === undefined) return place;
  return `${relative(root, join(folder, originalSource))}:${originalLine + 1}:${originalColumn + 1}`;
});
process.stdout.write(text);
