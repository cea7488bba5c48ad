#!/usr/bin/env node
// Reads what `tap --reporter=terse` printed and closes with one plain line, 'N passed, N failed'. No test run is a failure.
import { readFileSync } from 'node:fs';

const printed = readFileSync(process.argv[2], 'utf8');
const [, passed = '0', failed = '0'] = [...printed.matchAll(/Asserts:\s+(\d+) pass\s+(\d+) fail/g)].at(-1) ?? [];
console.log(`${passed} passed, ${failed} failed`);
process.exit(Number(passed) > 0 && Number(failed) === 0 ? 0 : 1);
