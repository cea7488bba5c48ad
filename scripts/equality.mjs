#!/usr/bin/env node
// Runs programs untraced and traced, and says where the two differ (scripts/equality installs them).
//   scripts/equality.mjs [--json | --packages] [--few] [PACKAGE...]
// A stripped program gets the symbols of scripts/equality-symbols.mjs, so that all of its functions are probed.
// --json: an object a program. --packages: COMMAND=PACKAGE of each, for scripts/lib.sh.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join, resolve } from 'node:path';
import { withSymbols } from './equality-symbols.mjs';

const root = join(import.meta.dirname, '..');
const lists = join(root, 'test/native/equality');
const main = process.env.RSPTRACE_MAIN ?? join(root, 'dist/cli/main.js');
/** Of one run, in milliseconds: only what hangs meets it. */
const LIMIT = Number(process.env.EQUALITY_LIMIT ?? 300) * 1000;
const words = process.argv.slice(2);
const has = (option) => words.includes(option);
const chosen = words.filter((word) => !word.startsWith('--'));
/** Debian's own programs first: a user's folders may have others of the same names, or scripts. */
const path = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', process.env.PATH].join(delimiter);

/** A line: `*`, if it is of the few; the package; the command as a shell reads it. The first word is the program. */
const programs = readFileSync(join(lists, 'programs.txt'), 'utf8')
  .split('\n')
  .map((line) => /^(?<few>\*?)(?<pack>[^\s:#]+): (?<command>(?<program>\S+).*)$/.exec(line)?.groups)
  .filter((one) => one !== undefined)
  .filter(({ few }) => !has('--few') || few === '*')
  .filter(({ pack, program }) => chosen.length === 0 || chosen.includes(pack) || chosen.includes(program));

/** What the static programs are compiled with. */
const forStatic = [
  'g++=g++',
  ...['lua5.4/lua.h=liblua5.4-dev', 'sqlite3.h=libsqlite3-dev', 'expat.h=libexpat1-dev', 'pcre2.h=libpcre2-dev'],
  ...['zstd.h=libzstd-dev', 'zlib.h=zlib1g-dev', 'bzlib.h=libbz2-dev', 'gmpxx.h=libgmp-dev'],
].map((each) => (each.includes('.h=') ? `/usr/include/${each}` : each));

if (has('--packages')) {
  const debians = programs.filter(({ pack }) => pack !== 'static');
  const compiled = debians.length < programs.length ? forStatic : [];
  console.log([...debians.map(({ program, pack }) => `${program}=${pack}`), ...compiled].join('\n'));
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), 'rsptrace-equality-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const inputs = join(folder, 'inputs');
const work = join(folder, 'work');
const file = (name) => join(folder, name);
/** gdbserver gives the program a standard output and error of its own, so that nothing else is in these. */
const shims = join(folder, 'shims');

/** What both runs have, so that they can be alike. */
const environment = {
  PATH: `${shims}${delimiter}${path}`,
  HOME: work,
  TMPDIR: work,
  LC_ALL: 'C.UTF-8',
  TZ: 'UTC',
  SOURCE_DATE_EPOCH: '1700000000',
  SHELL: '/bin/sh',
  // It would be a file more in the working folder.
  RSPTRACE_CACHE: 'off',
  // gdbserver 13 damages registers of AVX-512 at stops (docs/stubs.md): glibc and OpenSSL do without in both.
  GLIBC_TUNABLES: 'glibc.cpu.hwcaps=-AVX512F,-AVX512VL',
  OPENSSL_ia32cap: ':~0xdc230000',
  EQUALITY_OUT: file('out'),
  EQUALITY_ERR: file('err'),
  EQUALITY_MAIN: main,
  EQUALITY_FOLDER: folder,
  EQUALITY_STATIC: programs.some(({ pack }) => pack === 'static') ? '1' : '',
};

function find(program) {
  if (program.includes('/')) return resolve(inputs, program);
  for (const each of path.split(delimiter)) {
    try {
      accessSync(join(each, program), constants.X_OK);
      return join(each, program);
    } catch {
      // It is elsewhere.
    }
  }
  return undefined;
}

function script(name, text) {
  writeFileSync(join(shims, name), text);
  chmodSync(join(shims, name), 0o755);
}

/** Runs a line by bash. Gives its status, and whether it had to be killed. */
function bash(command, output) {
  const out = openSync(output, 'w');
  const child = spawn('bash', ['-c', command], {
    cwd: work,
    env: environment,
    stdio: ['ignore', out, out],
    detached: true,
  });
  closeSync(out);
  return new Promise((done) => {
    let killed = false;
    const timer = setTimeout(() => {
      killed = true;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has just ended.
      }
    }, LIMIT);
    child.once('close', (status, signal) => {
      clearTimeout(timer);
      done({ status: status ?? signal, killed });
    });
  });
}

/** The names and the contents of all that lies in the working folder. */
function tree(at = work, name = '') {
  return readdirSync(at, { withFileTypes: true })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const inner = join(at, entry.name);
      if (entry.isDirectory()) return tree(inner, `${name}${entry.name}/`);
      const text = entry.isFile() ? createHash('sha256').update(readFileSync(inner)).digest('hex') : 'special';
      return [`${name}${entry.name} ${text}`];
    });
}

/** Runs a command in a fresh copy of the inputs; `how` begins the program. */
async function run(command, how) {
  rmSync(work, { recursive: true, force: true });
  cpSync(inputs, work, { recursive: true, preserveTimestamps: true });
  for (const name of ['out', 'err']) writeFileSync(file(name), '');
  const since = performance.now();
  const ended = await bash(`${how} ${command}`, file('said'));
  return {
    ...ended,
    seconds: (performance.now() - since) / 1000,
    out: readFileSync(file('out')),
    err: readFileSync(file('err')),
    files: tree(),
  };
}

function differences(plain, traced) {
  const found = [];
  if (traced.killed) found.push(`hangs: killed after ${LIMIT / 1000} s`);
  if (plain.status !== traced.status) found.push(`status ${traced.status} for ${plain.status}`);
  if (!plain.out.equals(traced.out)) found.push(`output of ${traced.out.length} bytes for ${plain.out.length}`);
  if (!plain.err.equals(traced.err)) found.push(`stderr of ${traced.err.length} bytes for ${plain.err.length}`);
  const files = traced.files.filter((one) => !plain.files.includes(one));
  if (plain.files.join('\n') !== traced.files.join('\n')) found.push(`files: ${files.slice(0, 3).join(', ')}`);
  return found;
}

/** Addresses and registers make one reason many. */
const kind = (why) =>
  why
    .replace(/0x[0-9a-f]+/g, 'A')
    .replace(/\b\d+\b/g, 'N')
    .replace(/\b(j[a-z]+) A/g, 'jump A');

function engines(said) {
  try {
    const json = JSON.parse(said.slice(said.indexOf('{"version"')).split('\n')[0]);
    const reasons = {};
    for (const { engine, why } of json.probes ?? [])
      if (engine !== 'target') reasons[kind(why ?? '?')] = (reasons[kind(why ?? '?')] ?? 0) + 1;
    const {
      without_stops: inject = 0,
      stopping: stop = 0,
      left_out: none = 0,
      switched_off: off = 0,
    } = json.engines ?? {};
    return { events: json.events, stops: json.stops, inject, stop, none, off, reasons };
  } catch {
    return { failed: said.slice(-600) };
  }
}

async function compare({ pack, program, command }) {
  const found = find(program);
  if (found === undefined) return { pack, program, found: ['it is not installed'] };
  const real = realpathSync(found);
  if (readFileSync(real).readUInt32BE(0) !== 0x7f454c46) return { pack, program, found: [`${real} is no ELF`] };
  const symbols = withSymbols(readFileSync(real));
  // The same program, but for sections that are not loaded: both runs have it.
  const ran = symbols === undefined ? real : join(folder, 'bin', basename(program));
  if (symbols !== undefined) writeFileSync(ran, symbols, { mode: 0o755 });
  const rest = command.slice(program.length);
  const plain = await run(rest, `exec 2>"$EQUALITY_ERR" >"$EQUALITY_OUT"; exec setarch -R ${ran}`);
  const again = await run(rest, `exec 2>"$EQUALITY_ERR" >"$EQUALITY_OUT"; exec setarch -R ${ran}`);
  const odd = differences(plain, again);
  if (odd.length > 0) return { pack, program, found: [`untraced it differs from run to run: ${odd.join('; ')}`] };
  const options = `run --json --force --guest-status -p 'fn:**' -o ${file('trace.pftrace')} ${process.env.EQUALITY_OPTIONS ?? ''}`;
  const traced = await run(rest, `exec node ${main} ${options} ${ran} --`);
  const said = readFileSync(file('said'), 'utf8');
  const unequal = differences(plain, traced);
  if (unequal.length > 0 && process.env.EQUALITY_KEEP) {
    const kept = join(process.env.EQUALITY_KEEP, `${pack}-${program.replaceAll('/', '_')}`);
    mkdirSync(kept, { recursive: true });
    for (const name of ['said', 'out', 'err']) cpSync(file(name), join(kept, name));
    writeFileSync(join(kept, 'plain-out'), plain.out);
    writeFileSync(join(kept, 'plain-err'), plain.err);
    cpSync(ran, join(kept, basename(program)));
    writeFileSync(join(kept, 'command'), `${ran} ${rest}\n`);
  }
  return {
    pack,
    program,
    found: unequal,
    seconds: { plain: plain.seconds, traced: traced.seconds },
    symbols: symbols === undefined ? 'its own' : 'of its unwind tables',
    ...engines(said),
  };
}

function line({ pack, program, found, seconds, inject, stop, none, off, events, stops, failed }) {
  const result = found.length === 0 ? 'same' : `DIFFERS: ${found.join('; ')}`;
  const time = seconds === undefined ? '' : `, ${seconds.plain.toFixed(1)} -> ${seconds.traced.toFixed(1)} s`;
  const how =
    events === undefined
      ? ` (${(failed ?? '').trim().split('\n').slice(-2).join(' | ').slice(0, 300)})`
      : ` ${inject} without stops, ${stop} stop, ${none} left out, ${off} switched off; ${events} events, ${stops} stops${time}`;
  return `${pack} ${program}: ${result};${how}`;
}

for (const each of [inputs, shims, work, join(folder, 'bin')]) mkdirSync(each);
const gdbserver = find('gdbserver');
// It takes one wrapper: this one instead of rsptrace's own.
const past = 'if [ "$1" = --wrapper ]; then while [ "$1" != -- ]; do shift; done; shift; fi';
script('gdbserver', `#!/bin/sh\n${past}\nexec ${gdbserver} --wrapper ${join(shims, 'wrapper')} -- "$@"\n`);
script('wrapper', '#!/bin/sh\nexec "$@" >"$EQUALITY_OUT" 2>"$EQUALITY_ERR"\n');
cpSync(lists, inputs, { recursive: true });
{
  const made = spawn('sh', [join(lists, 'inputs.sh')], {
    cwd: inputs,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: environment,
  });
  const [status] = await new Promise((done) => made.once('close', (...all) => done(all)));
  if (status !== 0) throw new Error(`inputs.sh ended with ${status}`);
}
let bad = 0;
const total = {};
for (const program of programs) {
  const result = await compare(program);
  if (result.found.length > 0) bad++;
  for (const [why, count] of Object.entries(result.reasons ?? {})) total[why] = (total[why] ?? 0) + count;
  console.log(has('--json') ? JSON.stringify(result) : line(result));
}
if (!has('--json')) {
  for (const [why, count] of Object.entries(total)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 40))
    console.log(`${count}: ${why}`);
  console.log(`${programs.length} programs, ${bad} differ`);
}
process.exit(bad > 0 ? 1 : 0);
