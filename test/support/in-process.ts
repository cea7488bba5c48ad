import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { wrongJson } from './json-schema.js';
import { type Command, jsonOf, Output } from './output.js';

/** What the thread says: a piece of what its command prints, a signal that nothing waits for, or the command's end. */
type Said =
  | { readonly stream: 'stdout' | 'stderr'; readonly text: string }
  | { readonly killed: NodeJS.Signals }
  | { readonly status: number };

/** Threads that wait for their next command: what they have compiled is what makes a second command quick. */
const idle: Worker[] = [];
let commands = 0;

/**
 * The built command in a thread of this process, because a process of its own takes longer to start than most command
 * lines to run. It has ended when nothing of it is active any more, as a process has. Each command runs in some test
 * as a user runs it: `rsptraceProcess`.
 */
export function runInThread(words: readonly string[], limitMs: number): Command {
  const thread =
    idle.pop() ??
    new Worker(join(import.meta.dirname, 'command-thread.mjs'), { execArgv: [], trackUnmanagedFds: false });
  thread.ref();
  const output = new Output();
  let over = false;
  const ended = untilEnd(thread, output, limitMs).then(({ status, signal }) => {
    over = true;
    const ran = output.end(status, signal);
    const wrong = wrongJson(words, ran.stdout);
    if (wrong.length > 0) throw new Error(`docs/json.schema.json: ${words.join(' ')}: ${wrong.slice(0, 5).join('; ')}`);
    return ran;
  });
  const command = commands++;
  thread.postMessage({ words, command });
  return {
    ended,
    json: (status) => jsonOf(ended, status),
    shows: (text) => output.shows(text),
    read: (reader) => output.read(reader),
    signal: (signal) => thread.postMessage({ signal, command }),
    over: () => over,
  };
}

interface End {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

async function untilEnd(thread: Worker, output: Output, limitMs: number): Promise<End> {
  const stop = new AbortController();
  const killed = new Promise<End>((resolve) => {
    const killer = setTimeout(() => {
      output.add('stderr', `\n[killed: it had not ended after ${limitMs / 1000} s]`);
      resolve({ status: null, signal: 'SIGKILL' });
    }, limitMs);
    stop.signal.addEventListener('abort', () => clearTimeout(killer));
  });
  // As node ends a process whose error nobody catches.
  const failed = once(thread, 'error', { signal: stop.signal }).then(
    ([error]: Error[]): End => {
      output.add('stderr', `${error?.stack}\n`);
      return { status: 1, signal: null };
    },
    () => ({ status: null, signal: null }),
  );
  const said = new Promise<End>((resolve) => {
    const listen = (what: Said): void => {
      if ('text' in what) output.add(what.stream, what.text);
      else if ('killed' in what) resolve({ status: null, signal: what.killed });
      else resolve({ status: what.status, signal: null });
    };
    // A command that ends by `process.exit` ends its thread.
    const exited = (status: number): void => resolve({ status, signal: null });
    thread.on('message', listen).on('exit', exited);
    stop.signal.addEventListener('abort', () => thread.off('message', listen).off('exit', exited));
  });
  const end = await Promise.race([said, failed, killed]);
  stop.abort();
  if (end.signal === null && end.status !== null && thread.threadId >= 0) {
    thread.unref();
    idle.push(thread);
  } else await thread.terminate();
  return end;
}
