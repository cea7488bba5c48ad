import { spawn } from 'node:child_process';
import { type FileHandle, mkdtemp, open as openHandle, rm } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, RsptraceError } from '../base/errors.js';
import { headOf } from '../base/file-bytes.js';
import { textLines } from '../text/index.js';
import { FromFirstEvent, formats, openTrace } from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import type { OpenArguments } from './options/saved-trace.js';
import { readSaved } from './saved-trace.js';

const VIEWER = 'https://ui.perfetto.dev';
/** The only port that the viewer's pages may fetch from. */
const VIEWER_PORT = 9001;
const viewed = ['Perfetto', 'Chrome Trace Events'];
/** Needs nobody who serves it. */
const ownPage = 'HTML report';

/** What is served, and where a browser finds it. */
interface Offered {
  readonly file: FileHandle;
  readonly size: number;
  readonly type: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly name: string;
  /** Of the port where it is served. */
  readonly page: (port: number) => string;
}

/**
 * `rsptrace open TRACE`: an HTML report goes to the browser as it is. Of any other trace one is made, or the trace
 * itself goes to Perfetto's viewer, as `open_trace_in_ui` of Perfetto does it. Either is served on this machine alone,
 * until the browser has fetched it or Ctrl-C. Gives the exit status.
 */
export async function open({ trace, plugin, browser, port, perfetto }: OpenArguments): Promise<number> {
  const kind = kindOf(trace);
  if (perfetto && !viewed.includes(kind ?? '')) throw notViewed(trace, kind === ownPage);
  if (kind === ownPage) {
    const page = pathToFileURL(trace).href;
    if (!browser || !(await isOpened(page))) process.stdout.write(textLines([page]));
    return ExitCode.recorded;
  }
  await using file = perfetto ? await openFile(trace) : await reportOf(trace, plugin);
  const { size } = await file.stat();
  const offered = { file, size, ...(perfetto ? forViewer(trace) : asReport(trace)) };
  await serveOnce(offered, port ?? (perfetto ? VIEWER_PORT : 0), browser);
  return ExitCode.recorded;
}

function forViewer(trace: string): Omit<Offered, 'file' | 'size'> {
  const name = encodeURIComponent(basename(trace));
  const headers = { 'Access-Control-Allow-Origin': VIEWER, 'Access-Control-Allow-Private-Network': 'true' };
  const type = 'application/octet-stream';
  // The viewer decodes what stands behind `url=`, once.
  const page = (port: number): string => `${VIEWER}/#!/?url=http://127.0.0.1:${port}/${encodeURIComponent(name)}`;
  return { name, headers, type, page };
}

function asReport(trace: string): Omit<Offered, 'file' | 'size'> {
  const name = `${encodeURIComponent(basename(trace))}.html`;
  return { name, headers: {}, type: 'text/html', page: (port) => `http://127.0.0.1:${port}/${name}` };
}

/** The HTML report of a trace: a file that has lost its name before it is written, so that it ends with us. */
async function reportOf(trace: string, plugin: readonly string[]): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'rsptrace-open-'));
  const path = join(folder, 'report.html');
  const page = openTrace(path);
  const file = await openHandle(path, 'r');
  await rm(folder, { recursive: true });
  try {
    const sink = new FromFirstEvent(() => page);
    await readSaved(trace, sink, { plugin });
    sink.finish();
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function serveOnce(offered: Offered, wanted: number, browser: boolean): Promise<void> {
  let fetched = (): void => {};
  const isFetched = new Promise<void>((resolve) => {
    fetched = resolve;
  });
  const server = createServer((request, response) => {
    // A page of another name whose address is this machine's (DNS rebinding) may not read the trace.
    if (!isThisMachine(request.headers.host)) response.writeHead(403).end();
    else if (request.url !== `/${offered.name}`) response.writeHead(404).end();
    else serve(offered, request.method ?? 'GET', response, fetched);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(cannotServe(wanted, error)));
    server.listen(wanted, '127.0.0.1', resolve);
  });
  process.once('SIGINT', fetched).once('SIGTERM', fetched);
  try {
    note('serves the trace until the page has fetched it, or until Ctrl-C');
    const page = offered.page((server.address() as AddressInfo).port);
    // A desktop's opener may stay as long as its browser does.
    const isShown = browser && (await Promise.race([isOpened(page), isFetched.then(() => true)]));
    if (!isShown) process.stdout.write(textLines([page]));
    await isFetched;
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

/** The name of its format; undefined for a folder, and for a file that is not known by its beginning. */
function kindOf(trace: string): string | undefined {
  let head: ReturnType<typeof headOf>;
  try {
    head = headOf(trace);
  } catch (error) {
    throw unreadable(trace, error);
  }
  return head && formats.find((one) => one.recognizes(head))?.name;
}

function notViewed(trace: string, isPage: boolean): RsptraceError {
  return new RsptraceError('TRACE_FOREIGN', `${trace} is nothing that ui.perfetto.dev shows`, {
    hint: isPage
      ? 'leave --perfetto out: it is a page itself'
      : 'give a .pftrace, .pftrace.gz or .json: rsptrace convert makes one of a directory of uftrace',
  });
}

function serve(
  { file, size, type, headers }: Offered,
  method: string,
  response: ServerResponse,
  fetched: () => void,
): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.setHeader('Cache-Control', 'no-cache');
  response.setHeader('Connection', 'close');
  if (method !== 'GET' && method !== 'HEAD') {
    response.writeHead(method === 'OPTIONS' ? 204 : 405).end();
    return;
  }
  response.setHeader('Content-Type', type);
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
    hint: 'end what listens there, perhaps a trace_processor; or take another with --port',
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
