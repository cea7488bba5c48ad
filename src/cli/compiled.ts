// All of rsptrace's code is one script (scripts/bundle.mjs), and what V8 has compiled of it is kept in the user's cache
// folder: the next start does not compile it again.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { readKept, writeKept } from '../base/kept-files.js';

type Parts = Readonly<Record<string, () => Readonly<Record<string, unknown>>>>;

/** A second, longer run of a command has compiled more than the first one: after it nothing is kept anew. */
const [FIRST, WHOLE] = ['first', 'whole'];
/** User time of a longer run, in microseconds. */
const LONGER = 1e6;

const folder = dirname(fileURLToPath(import.meta.url));
let parts: Parts | undefined;

/** What a module of `src/` exports, by its path without the ending. */
export function part(name: string): Readonly<Record<string, unknown>> {
  parts ??= load();
  return (parts[name] as Parts[string])();
}

function load(): Parts {
  // Its name has a hash of it, so what was kept is of this code.
  const name = readdirSync(folder).find((file) => /^code-\w+\.cjs$/.test(file)) as string;
  const filename = join(folder, name);
  const [, command = 'record'] = /^([a-z]{2,12})$/.exec(process.argv[2] ?? '') ?? [];
  const keptName = `${name}-${process.version}-${process.arch}-${command}-`;
  const whole = readKept(keptName + WHOLE);
  const cachedData = whole ?? readKept(keptName + FIRST);
  const script = new Script(readFileSync(filename, 'latin1'), { filename, ...(cachedData && { cachedData }) });
  const isKnown = cachedData !== undefined && script.cachedDataRejected === false;
  process.once('exit', (status) => {
    if (status !== 0 || (isKnown && (whole !== undefined || process.cpuUsage().user < LONGER))) return;
    writeKept(keptName + (isKnown ? WHOLE : FIRST), [script.createCachedData()]);
  });
  const module = { exports: {} };
  script.runInThisContext()(
    createRequire(import.meta.url),
    module,
    pathToFileURL(filename).href,
    (name: string) => import(name),
  );
  return module.exports;
}
