// Starting a program from a large process takes long: fork(2) copies its page tables, 20 ms for a test's 400 MB, where
// a small process takes 1 ms. So `spawnSync` and `execFileSync` of a process that imports this are done by a small one.
import childProcess from 'node:child_process';
import { mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';

const LENGTH = 4;
/** As execFileSync has it by itself. */
const MOST_OUTPUT = 2 ** 20;

function send(fd, value) {
  const bytes = serialize(value);
  const length = Buffer.alloc(LENGTH);
  length.writeUInt32LE(bytes.length);
  for (const each of [length, bytes]) for (let at = 0; at < each.length; ) at += writeSync(fd, each, at);
}

/** Undefined when the other side has gone. */
function receive(fd) {
  const take = (size) => {
    const bytes = Buffer.alloc(size);
    for (let at = 0; at < size; ) {
      const count = readSync(fd, bytes, at, size - at, null);
      if (count === 0) return undefined;
      at += count;
    }
    return bytes;
  };
  const length = take(LENGTH);
  const bytes = length && take(length.readUInt32LE());
  return bytes && deserialize(bytes);
}

/** The small process: does what it is asked until nobody can ask any more. */
function serve(requests, answers) {
  const [from, to] = [openSync(requests, 'r'), openSync(answers, 'w')];
  for (;;) {
    const asked = receive(from);
    if (asked === undefined) return;
    const { error, ...result } = childProcess.spawnSync(asked.program, asked.args, asked.options);
    send(to, { ...result, error: error && { message: error.message, ...error } });
  }
}

/** The small process, where this is not it. */
export const server = process.argv[1] === import.meta.filename ? serve(...process.argv.slice(2)) : replace();

function replace() {
  const { execFileSync, spawn, spawnSync } = childProcess;
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-spawn-'));
  const [requests, answers] = ['requests', 'answers'].map((name) => join(folder, name));
  execFileSync('mkfifo', [requests, answers]);
  const server = spawn(process.execPath, [import.meta.filename, requests, answers], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [to, from] = [openSync(requests, 'w'), openSync(answers, 'r')];
  rmSync(folder, { recursive: true });
  server.unref();

  /** Streams of this process are not the small one's. */
  const isPlain = ({ stdio = 'pipe' }) => [stdio].flat().every((each) => each === 'pipe' || each === 'ignore');

  childProcess.spawnSync = (program, args, options) => {
    const [words, given = {}] = Array.isArray(args) ? [args, options] : [[], args];
    if (!isPlain(given)) return spawnSync(program, words, given);
    const asked = { cwd: process.cwd(), env: { ...process.env }, maxBuffer: MOST_OUTPUT, ...given };
    send(to, { program, args: words, options: asked });
    const { error, ...result } = receive(from);
    return error === undefined ? result : { ...result, error: Object.assign(new Error(error.message), error) };
  };
  childProcess.execFileSync = (program, args, options) => {
    const [words, given = {}] = Array.isArray(args) ? [args, options] : [[], args];
    if (given.stdio !== undefined && !isPlain(given)) return execFileSync(program, words, given);
    const result = childProcess.spawnSync(program, words, given);
    if (given.stdio === undefined && result.stderr) process.stderr.write(result.stderr);
    if (result.error) throw Object.assign(result.error, result);
    if (result.status === 0) return result.stdout;
    const said = result.stderr?.length ? `\n${result.stderr}` : '';
    throw Object.assign(new Error(`Command failed: ${[program, ...words].join(' ')}${said}`), result);
  };
  syncBuiltinESMExports();
  return server;
}
