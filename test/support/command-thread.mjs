// Runs command lines one after another as dist/cli/main.js does, in a thread whose standard streams are its own.
import { StringDecoder } from 'node:string_decoder';
import { parentPort } from 'node:worker_threads';
import { runCommandLine } from '../../dist/cli/command-line.js';
import { fail } from '../../dist/cli/failure.js';

for (const stream of ['stdout', 'stderr']) {
  const decoder = new StringDecoder();
  process[stream].write = (chunk, encoding, written) => {
    const text = typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk));
    parentPort?.postMessage({ stream, text });
    (typeof encoding === 'function' ? encoding : written)?.();
    return true;
  };
}

// A command that ends itself by a signal ends its thread, not the tests.
const kill = process.kill.bind(process);
process.kill = (pid, signal) => {
  if (pid !== process.pid || signal === 0) return kill(pid, signal);
  parentPort?.postMessage({ killed: signal });
  return true;
};

async function statusOf(words) {
  try {
    return await runCommandLine(words);
  } catch (error) {
    return fail(error, { json: words.includes('--json') });
  }
}

/** Resolves when nothing would keep a process: sockets, timers, children. */
function nothingActive() {
  return new Promise((resolve) => {
    const look = () => {
      if (process.getActiveResourcesInfo().every((kind) => kind === 'MessagePort')) resolve();
      else setTimeout(look, 5).unref();
    };
    look();
  });
}

/** The number of the command that runs; undefined between two. */
let running;

parentPort?.on('message', async ({ words, signal, command }) => {
  if (signal !== undefined) {
    // A command that has ended meanwhile gets no signal, and neither does the next one.
    if (command !== running) return;
    if (!process.emit(signal, signal)) parentPort?.postMessage({ killed: signal });
    return;
  }
  running = command;
  const status = await statusOf(words);
  await nothingActive();
  running = undefined;
  parentPort?.postMessage({ status });
});
