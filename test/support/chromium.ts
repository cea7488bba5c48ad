// Chromium without a window, driven by its devtools protocol over a pipe: JSON texts that end in a NUL.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

type Json = Readonly<Record<string, unknown>>;

/** One page. */
export interface Page extends AsyncDisposable {
  /** What a method of the protocol gives. */
  readonly call: (method: string, params?: Json) => Promise<Json>;
  /** The value of an expression, or what a promise gives. */
  readonly value: <T>(expression: string) => Promise<T>;
  /** When an expression is true. */
  readonly until: (expression: string) => Promise<void>;
  readonly click: (x: number, y: number) => Promise<void>;
  /** Texts of the page's errors: of scripts, of the console, of what was refused. */
  readonly errors: readonly string[];
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: Json;
  readonly error?: { readonly message: string };
}

/** Opens a file in a window of 1280 x 800. `dark`: as the scheme that is preferred. */
export async function openPage(path: string, { dark = false, fragment = '' } = {}): Promise<Page> {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-chromium-'));
  const words = ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', '--window-size=1280,800'];
  const args = [...words, '--force-device-scale-factor=1', '--hide-scrollbars', `--user-data-dir=${folder}`];
  const child = spawn('timeout', ['300', 'chromium', ...args, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  const [to, from] = [child.stdio[3] as Writable, child.stdio[4] as Readable];
  const waiting = new Map<number, { resolve: (result: Json) => void; reject: (error: Error) => void }>();
  const errors: string[] = [];
  const took = ({ id, method, params, result, error }: Message): void => {
    const asked = id === undefined ? undefined : waiting.get(id);
    if (asked && error) asked.reject(new Error(error.message));
    else asked?.resolve(result ?? {});
    const isError = (params?.entry as Json | undefined)?.level === 'error' || params?.type === 'error';
    const isBad = method === 'Runtime.exceptionThrown' || (isError && /^(Log|Runtime)\./.test(method ?? ''));
    if (isBad) errors.push(JSON.stringify(params));
  };
  let text = '';
  from.setEncoding('utf8').on('data', (part: string) => {
    const parts = (text + part).split('\0');
    text = parts.pop() ?? '';
    for (const each of parts) took(JSON.parse(each) as Message);
  });
  const gone = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', () => reject(new Error('chromium has ended')));
  });
  gone.catch(() => {});
  let last = 0;
  const send = async (method: string, params: Json, sessionId?: string): Promise<Json> => {
    const id = ++last;
    to.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    const answered = new Promise<Json>((resolve, reject) => waiting.set(id, { resolve, reject }));
    return await Promise.race([answered, gone]);
  };
  const { targetInfos } = (await send('Target.getTargets', {})) as { targetInfos: readonly Json[] };
  const targetId = targetInfos.find(({ type }) => type === 'page')?.targetId;
  const { sessionId } = (await send('Target.attachToTarget', { targetId, flatten: true })) as { sessionId: string };
  const call = (method: string, params: Json = {}): Promise<Json> => send(method, params, sessionId);
  const value = async <T>(expression: string): Promise<T> => {
    const asked = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await call('Runtime.evaluate', asked);
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { value: T }).value;
  };
  for (const room of ['Page', 'Runtime', 'Log']) await call(`${room}.enable`);
  const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
  await call('Emulation.setEmulatedMedia', { features });
  const size = { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false };
  await call('Emulation.setDeviceMetricsOverride', size);
  await call('Page.navigate', { url: `${pathToFileURL(path).href}${fragment}` });
  const until = async (expression: string): Promise<void> => {
    while (!(await value<boolean>(expression))) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  const mouse = (type: string, x: number, y: number): Promise<Json> =>
    call('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 });
  return {
    call,
    value,
    until,
    errors,
    click: async (x, y) => {
      await mouse('mousePressed', x, y);
      await mouse('mouseReleased', x, y);
    },
    async [Symbol.asyncDispose]() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      await send('Browser.close', {}).catch(() => child.kill());
      await ended;
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
