#!/usr/bin/env node
import { fail } from './failure.js';
import { watchStandardStreams } from './standard-streams.js';

watchStandardStreams();
const words = process.argv.slice(2);
try {
  // Loaded here, because a package that is missing is an error like others.
  const { runCommandLine } = await import('./command-line.js');
  process.exitCode = await runCommandLine(words);
} catch (error) {
  process.exitCode = fail(error, { json: words.some((word) => /^--json(?:=|$)/.test(word)) });
}
