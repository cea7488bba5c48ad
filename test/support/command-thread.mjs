// Runs command lines one after another as dist/cli/main.js does, in a thread whose standard streams are its own.
import { parentPort } from 'node:worker_threads';
import { runCommandLine } from '../../dist/cli/command-line.js';
import { fail } from '../../dist/cli/failure.js';

let shown = { stdout: '', stderr: '' };
for (const name of ['stdout', 'stderr'])
  process[name].write = (chunk, encoding, written) => {
    shown[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    (typeof encoding === 'function' ? encoding : written)?.();
    return true;
  };

async function statusOf(words) {
  try {
    return await runCommandLine(words);
  } catch (error) {
    return fail(error, { json: words.includes('--json') });
  }
}

parentPort?.on('message', async (words) => {
  shown = { stdout: '', stderr: '' };
  const status = await statusOf(words);
  parentPort?.postMessage({ status, signal: null, ...shown });
});
