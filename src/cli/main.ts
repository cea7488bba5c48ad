#!/usr/bin/env node
import { runCommandLine } from './command-line.js';
import { fail } from './failure.js';
import { watchStandardStreams } from './standard-streams.js';

watchStandardStreams();
const words = process.argv.slice(2);
try {
  process.exitCode = await runCommandLine(words);
} catch (error) {
  process.exitCode = fail(error, { json: words.some((word) => /^--json(?:=|$)/.test(word)) });
}
