import { spawn } from 'node:child_process';
import { type FileHandle, open as openHandle } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, RsptraceError } from '../base/errors.js';
import { headOf } from '../base/file-head.js';
import { textLines } from '../text/index.js';
import { formats } from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import type { OpenArguments } from './options/saved-trace.js';

const VIEWER = 'https://ui.perfetto.dev';
const viewed = ['Perfetto', 'Chrome Trace Events'];
/** Needs no viewer, and nobody who serves it. */
const ownPage = 'HTML report';

/**
 * `rsptrace open TRACE`: an HTML report goes to the browser as it is. Any other is served on this machine alone, as `open_trace_in_ui` of Perfetto does, until the viewer has
 * fetched it or Ctrl-C. Gives the exit status.
 */
export async function open({ trace, browser, port }: OpenArguments): Promise<number> {
  if (kindOf(trace) === ownPage) {
    const page = pathToFileURL(trace).href;
    if (!browser || !(await isOpened(page))) process.stdout.write(textLines([page]));
    return ExitCode.recorded;
  }
  // Kept open: the file may be renamed or removed before the page asks for it.
  await using file = await openFile(trace);
  const { size } = await file.stat();
  const name = encodeURIComponent(basename(trace));
  const page = `${VIEWER}/#!/?url=http://127.0.0.1:${port}/${name}`;
  let fetched = (): void => {};
  const isFetched = new Promise<void>((resolve) => {
    fetched = resolve;
  });
  const server = createServer((request, response) => {
    // A page of another name whose address is this machine's (DNS rebinding) may not read the trace.
    if (!isThisMachine(request.headers.host)) response.writeHead(403).end();
    else if (request.url !== `/${name}`) response.writeHead(404).end();
    else serve({ file, size }, request.method ?? 'GET', response, fetched);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(cannotServe(port, error)));
    server.listen(port, '127.0.0.1', resolve);
  });
  process.once('SIGINT', fetched).once('SIGTERM', fetched);
  try {
    note('serves the trace until the page has fetched it, or until Ctrl-C');
    // A desktop's opener may stay as long as its browser does.
    const isShown = browser && (await Promise.race([isOpened(page), isFetched.then(() => true)]));
    if (!isShown) process.stdout.write(textLines([page]));
    await isFetched;
    return ExitCode.recorded;
  } finally {
    process.off('SIGINT', fetched).off('SIGTERM', fetched);
    await ended(server);
  }
}

function isThisMachine(host: string | undefined): boolean {
  return /^(localhost|127\.0\.0\.1)(:\d+)?$/.test(host ?? '');
}

/** Lets answers that are on their way end, for a second. */
async function ended(server: Server): Promise<void> {
  const isClosed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const late = setTimeout(() => server.closeAllConnections(), 1000);
  await isClosed;
  clearTimeout(late);
}

async function openFile(trace: string): Promise<FileHandle> {
  try {
    return await openHandle(trace, 'r');
  } catch (error) {
    throw unreadable(trace, error);
  }
}

function unreadable(trace: string, cause: unknown): RsptraceError {
  return new RsptraceError('TRACE_UNREADABLE', `cannot read the trace ${trace}: ${messageOf(cause)}`, {
    hint: 'name a .pftrace, .pftrace.gz, .json or .html',
    cause,
  });
}

/** The name of its format, if there is something that shows it. */
function kindOf(trace: string): string {
  let head: ReturnType<typeof headOf>;
  try {
    head = headOf(trace);
  } catch (error) {
    throw unreadable(trace, error);
  }
  const format = head && formats.find((one) => one.recognizes(head));
  if (format && (format.name === ownPage || viewed.includes(format.name))) return format.name;
  throw new RsptraceError('TRACE_FOREIGN', `${trace} is nothing that ui.perfetto.dev or a browser shows`, {
    hint: 'give a .pftrace, .pftrace.gz, .json or .html: rsptrace convert makes one of a directory of uftrace',
  });
}

interface Served {
  readonly file: FileHandle;
  readonly size: number;
}

function serve({ file, size }: Served, method: string, response: ServerResponse, fetched: () => void): void {
  response.setHeader('Access-Control-Allow-Origin', VIEWER);
  response.setHeader('Access-Control-Allow-Private-Network', 'true');
  response.setHeader('Cache-Control', 'no-cache');
  response.setHeader('Connection', 'close');
  if (method === 'OPTIONS') {
    response.writeHead(204).end();
    return;
  }
  if (method !== 'GET' && method !== 'HEAD') {
    response.writeHead(405).end();
    return;
  }
  response.setHeader('Content-Type', 'application/octet-stream');
  response.setHeader('Content-Length', size);
  if (method === 'HEAD') {
    response.end();
    return;
  }
  let isRead = false;
  // A client that has all of it may close the connection before the last write is known to be done.
  response.once('finish', fetched).once('close', () => isRead && fetched());
  file
    .createReadStream({ autoClose: false, start: 0, end: size - 1 })
    .on('error', () => response.destroy())
    .on('end', () => {
      isRead = true;
    })
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
