import { spawn } from 'node:child_process';
import { createReadStream, statSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { basename } from 'node:path';
import { messageOf, RsptraceError } from '../base/errors.js';
import { headOf } from '../base/file-head.js';
import { textLines } from '../base/visible.js';
import { formats } from '../trace/index.js';
import { ExitCode } from './failure.js';
import { note } from './notes.js';
import type { OpenArguments } from './saved-trace-options.js';

const VIEWER = 'https://ui.perfetto.dev';
const viewed = ['Perfetto', 'Chrome Trace Events'];

/**
 * `rsptrace open TRACE`: serves it on this machine alone, as `open_trace_in_ui` of Perfetto does, until the viewer has
 * fetched it or Ctrl-C. Gives the exit status.
 */
export async function open({ trace, browser, port }: OpenArguments): Promise<number> {
  checkViewable(trace);
  const name = encodeURIComponent(basename(trace));
  const page = `${VIEWER}/#!/?url=http://127.0.0.1:${port}/${name}`;
  let fetched = (): void => {};
  const isFetched = new Promise<void>((resolve) => {
    fetched = resolve;
  });
  const server = createServer((request, response) => {
    if (request.url !== `/${name}`) response.writeHead(404).end();
    else serve(trace, request.method ?? 'GET', response, fetched);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(cannotServe(port, error)));
    server.listen(port, '127.0.0.1', resolve);
  });
  process.once('SIGINT', fetched).once('SIGTERM', fetched);
  try {
    if (!browser || !(await isOpened(page))) process.stdout.write(textLines([page]));
    note('serves the trace until the page has fetched it, or until Ctrl-C');
    await isFetched;
    return ExitCode.recorded;
  } finally {
    process.off('SIGINT', fetched).off('SIGTERM', fetched);
    server.close();
    server.closeAllConnections();
  }
}

function checkViewable(trace: string): void {
  let head: ReturnType<typeof headOf>;
  try {
    head = headOf(trace);
  } catch (error) {
    throw new RsptraceError('TRACE_UNREADABLE', `cannot read the trace ${trace}: ${messageOf(error)}`, {
      hint: 'name a .pftrace, .pftrace.gz or .json',
      cause: error,
    });
  }
  if (head !== undefined && formats.some((one) => viewed.includes(one.name) && one.recognizes(head))) return;
  throw new RsptraceError('TRACE_FOREIGN', `${trace} is nothing that ui.perfetto.dev shows`, {
    hint: 'give a .pftrace, .pftrace.gz or .json: rsptrace convert makes one of a directory of uftrace',
  });
}

function serve(trace: string, method: string, response: ServerResponse, fetched: () => void): void {
  response.setHeader('Access-Control-Allow-Origin', VIEWER);
  response.setHeader('Access-Control-Allow-Private-Network', 'true');
  response.setHeader('Cache-Control', 'no-cache');
  if (method === 'OPTIONS') {
    response.writeHead(204).end();
    return;
  }
  if (method !== 'GET' && method !== 'HEAD') {
    response.writeHead(405).end();
    return;
  }
  response.setHeader('Content-Type', 'application/octet-stream');
  response.setHeader('Content-Length', statSync(trace).size);
  if (method === 'HEAD') {
    response.end();
    return;
  }
  response.once('finish', fetched);
  createReadStream(trace)
    .on('error', () => response.destroy())
    .pipe(response);
}

function cannotServe(port: number, cause: Error): RsptraceError {
  return new RsptraceError('OPEN_CANNOT_SERVE', `cannot serve at port ${port}: ${cause.message}`, {
    hint: 'end what listens there, perhaps a trace_processor; or take another with --port and --no-browser',
    cause,
  });
}

/** Asks the desktop for its browser. False where it has none. */
function isOpened(page: string): Promise<boolean> {
  return new Promise((resolve) => {
    const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
    const child = spawn(opener, [page], { stdio: 'ignore', detached: true });
    child.once('error', () => resolve(false));
    child.once('exit', (status) => resolve(status === 0));
    child.unref();
  });
}
