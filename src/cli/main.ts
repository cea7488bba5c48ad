#!/usr/bin/env node
import { basename } from 'node:path';
import { verifyRuntime } from '../base/runtime.js';
import { part } from './compiled.js';
import { asksForJson, fail } from './failure.js';
import { helpPage } from './help-pages.js';
import { watchStandardStreams } from './standard-streams.js';
import { sizeOf } from './terminal-size.js';

// `cargo rsptrace ...` starts `cargo-rsptrace rsptrace ...`.
const [, name = '', word] = process.argv;
if (basename(name) === 'cargo-rsptrace' && word === 'rsptrace') process.argv.splice(2, 1);

const words = process.argv.slice(2);
const page = helpPage(words, sizeOf(process.stdout).columns);
if (page === undefined) await run();
else {
  watchStandardStreams();
  process.stdout.write(page);
}

async function run(): Promise<void> {
  try {
    verifyRuntime();
    const { start } = part('cli/start') as typeof import('./start.js');
    await start(words);
  } catch (error) {
    // A package that is missing is an error like others.
    process.exitCode = fail(error, { json: asksForJson(words) });
  }
}
