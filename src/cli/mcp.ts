// The Model Context Protocol over standard streams: a JSON-RPC 2.0 message a line. Of it a server of tools needs four
// methods (modelcontextprotocol.io, "Lifecycle" and "Tools").
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { abortAtSignal } from '../api/index.js';
import { messageOf } from '../base/errors.js';
import { version } from './command-line.js';
import { ExitCode } from './failure.js';
import { toolNames, toolOf, wordsOf } from './mcp-tools.js';
import type { McpArguments } from './options/own.js';

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>> | null;
}

/** Versions of the protocol whose messages these are. */
const versions = ['2025-06-18', '2025-03-26', '2024-11-05'];
/** An assistant has no room for more. */
const MOST_TEXT = 400_000;
const UNKNOWN_METHOD = -32601;
const WRONG_PARAMS = -32602;
const NO_JSON = -32700;

/** `rsptrace mcp`: serves until standard input ends, or a signal comes. Gives the exit status. */
export async function serveTools(args: McpArguments): Promise<number> {
  const server = new Server(toolNames(args['allow-changes']));
  const stopper = new AbortController();
  using _handled = abortAtSignal(stopper);
  const lines = createInterface({ input: process.stdin, signal: stopper.signal });
  for await (const line of lines) if (line.trim() !== '') server.take(line);
  await server.over();
  return ExitCode.recorded;
}

class Server {
  readonly #names: readonly string[];
  readonly #running = new Map<string | number, { readonly child: ChildProcess; readonly ended: Promise<void> }>();

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  /** A line is a message, or a batch of some, as one of the versions has them. */
  take(line: string): void {
    try {
      for (const message of [JSON.parse(line) as unknown].flat()) {
        if (typeof message !== 'object' || message === null) throw new Error(`${message} is no message`);
        this.#answer(message);
      }
    } catch (error) {
      send({ id: null, error: { code: NO_JSON, message: messageOf(error) } });
    }
  }

  #answer(message: Message): void {
    const { id, method } = message;
    const params = message.params ?? {};
    if (method === 'notifications/cancelled') this.#running.get(params.requestId as string)?.child.kill('SIGTERM');
    if (id === undefined) return;
    if (method === 'initialize') {
      const asked = versions.find((one) => one === params.protocolVersion);
      const serverInfo = { name: 'rsptrace', version };
      send({ id, result: { protocolVersion: asked ?? versions[0], capabilities: { tools: {} }, serverInfo } });
    } else if (method === 'ping') send({ id, result: {} });
    else if (method === 'tools/list') send({ id, result: { tools: this.#names.map(toolOf) } });
    else if (method === 'tools/call') this.#call(id, params);
    else send({ id, error: { code: UNKNOWN_METHOD, message: `there is no method ${method}` } });
  }

  /** When all calls have ended; those that still run are ended as by Ctrl-C. */
  async over(): Promise<void> {
    const all = [...this.#running.values()];
    for (const { child } of all) child.kill('SIGTERM');
    await Promise.all(all.map(({ ended }) => ended));
  }

  #call(id: string | number, { name, arguments: given }: Readonly<Record<string, unknown>>): void {
    if (typeof name !== 'string' || !this.#names.includes(name)) {
      send({ id, error: { code: WRONG_PARAMS, message: `there is no tool ${String(name)}` } });
      return;
    }
    let words: string[];
    try {
      words = wordsOf(name, (given ?? {}) as Readonly<Record<string, unknown>>);
    } catch (error) {
      send({ id, result: resultOf({ stdout: messageOf(error), stderr: '', cut: 0 }, true) });
      return;
    }
    const main = fileURLToPath(new URL('./main.js', import.meta.url));
    const child = spawn(process.execPath, [main, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
    const texts = { stdout: '', stderr: '', cut: 0 };
    for (const stream of ['stdout', 'stderr'] as const)
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        const kept = text.slice(0, MOST_TEXT - texts[stream].length);
        texts[stream] += kept;
        texts.cut += text.length - kept.length;
      });
    const ended = new Promise<void>((resolve) => {
      child.once('error', (error) => {
        texts.stderr += error.message;
        resolve();
      });
      child.once('close', () => resolve());
    }).then(() => {
      this.#running.delete(id);
      const { exitCode, signalCode } = child;
      if (signalCode !== null) texts.stderr += `${name} was ended by ${signalCode}\n`;
      // Null: it was ended so, or never began.
      send({ id, result: resultOf(texts, exitCode === null || exitCode === 1 || exitCode === 2) });
    });
    this.#running.set(id, { child, ended });
  }
}

/** What a command prints, and what else it says; of both so many characters are cut. */
function resultOf({ stdout, stderr, cut }: { stdout: string; stderr: string; cut: number }, isError: boolean): object {
  const notes = cut > 0 ? `${stderr}${cut} characters more are left out: ask for less, by top or filter` : stderr;
  const texts = [stdout, notes].filter((text) => text !== '');
  return { content: texts.map((text) => ({ type: 'text', text })), isError };
}

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
