#!/usr/bin/env node
import { fail } from './failure.js';
import { helpPage } from './help-pages.js';
import { watchStandardStreams } from './standard-streams.js';

watchStandardStreams();
const words = process.argv.slice(2);
const page = helpPage(words, process.stdout.columns);
if (page === undefined) await run();
else process.stdout.write(page);

async function run(): Promise<void> {
  try {
    // Loaded here, because a package that is missing is an error like others.
    const { runCommandLine } = await import('./command-line.js');
    process.exitCode = await runCommandLine(words);
  } catch (error) {
    process.exitCode = fail(error, { json: words.some((word) => /^--json(?:=|$)/.test(word)) });
  }
}
