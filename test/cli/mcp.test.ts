// `rsptrace mcp` as the client of the protocol's own SDK uses it (scripts/test installs that), and by itself.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { toolNames, wordsOf } from '../../src/cli/mcp-tools.js';
import { elfPath } from '../qemu/guests/guests.js';
import { frozenGuest, main, rsptrace, scratchFolder } from '../support/command.js';
import { pollsProgram } from '../support/native.js';

interface Called {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly isError?: boolean;
}
interface Client {
  connect(transport: unknown): Promise<void>;
  listTools(): Promise<{ readonly tools: readonly { readonly name: string; readonly inputSchema: object }[] }>;
  callTool(call: { readonly name: string; readonly arguments: object }): Promise<Called>;
  close(): Promise<void>;
}
type Made<T> = new (...options: readonly unknown[]) => T;

const sdk = join(import.meta.dirname, '../../.cache/npm-mcp/node_modules/@modelcontextprotocol/sdk/dist/esm/client');

async function client(...options: string[]): Promise<Client> {
  const { Client: Made } = (await import(join(sdk, 'index.js'))) as { readonly Client: Made<Client> };
  const { StdioClientTransport } = (await import(join(sdk, 'stdio.js'))) as {
    readonly StdioClientTransport: Made<object>;
  };
  const made = new Made({ name: 'test', version: '1' });
  await made.connect(new StdioClientTransport({ command: process.execPath, args: [main, 'mcp', ...options] }));
  return made;
}

t.test('looks', async (t) => {
  const trace = join(scratchFolder(t), 'orders.pftrace');
  const ran = await rsptrace('run', '-o', trace, pollsProgram(t, 'orders'), '--', '20').ended;
  t.equal(ran.status, 0, ran.stderr);
  const asked = await client();
  t.teardown(() => asked.close());
  const { tools } = await asked.listTools();
  t.same(
    tools.map(({ name }) => name),
    ['tasks', 'bt', 'profile', 'report', 'info'],
  );
  const reported = await asked.callTool({ name: 'report', arguments: { trace, by: 'await' } });
  const { stdout } = await rsptrace('report', '--json', '--by', 'await', trace).ended;
  t.equal(reported.content[0]?.text, stdout, 'what the command prints');
  const large = join(scratchFolder(t), 'large.json');
  const traceEvents = Array.from({ length: 90 }, (_, i) => ({
    ...{ ph: 'X', name: `${i}${'a'.repeat(5000)}`, ts: i, dur: 1, pid: 1, tid: 1 },
  }));
  writeFileSync(large, JSON.stringify({ traceEvents }));
  const { content } = await asked.callTool({ name: 'report', arguments: { trace: large } });
  const whole = (await rsptrace('report', '--json', large).ended).stdout;
  t.equal(content[0]?.text, whole.slice(0, 400_000));
  t.match(content[1]?.text, `${whole.length - 400_000} characters more are left out`);
  const { socket } = frozenGuest(t, 'rv-o2');
  const stacks = await asked.callTool({ name: 'bt', arguments: { remote: socket, program: elfPath('rv-o2') } });
  t.match(JSON.parse(stacks.content[0]?.text ?? ''), { version: 1, harts: [{ id: 'p01.01' }] });
  const wrong = await asked.callTool({ name: 'info', arguments: { trace: '/nowhere.pftrace' } });
  t.equal(wrong.isError, true);
  t.match(wrong.content.map(({ text }) => text).join(), /TRACE_UNREADABLE|no file/);
});

t.test('nothing that starts or writes', (t) => {
  t.throws(() => wordsOf('profile', { program: './app' }), /would start the program/);
  // What is no value of the option would be none on the command line either.
  t.throws(() => wordsOf('profile', { program: './app', 'off-cpu': 'false' }), /off-cpu is true or false/);
  t.throws(() => wordsOf('profile', { program: './app', remote: [] }), /remote is a text/);
  t.throws(() => wordsOf('profile', { program: './app', pid: true }), /pid is a text/);
  t.throws(() => wordsOf('run', { program: './app', command: 'one two' }), /command is a list of texts/);
  t.throws(() => wordsOf('bt', { pid: '1', command: ['x'] }), /no argument 'command'/);
  t.same(wordsOf('run', { program: './app', command: ['--x', '1'] }), ['run', '--json', './app', '--', '--x', '1']);
  t.same(wordsOf('bt', { pid: 5 }), ['bt', '--pid=5', '--json']);
  t.throws(() => wordsOf('report', { trace: '--output=/etc/passwd' }), /without a dash/);
  t.throws(() => wordsOf('bt', { pid: '1', 'record-wire': '/tmp/x' }), /no argument 'record-wire'/);
  t.throws(() => wordsOf('bt', { pid: '1', plugin: ['/tmp/x.mjs'] }), /no argument 'plugin'/);
  t.throws(() => wordsOf('profile', { pid: '1', output: 'x' }), /no argument 'output'/);
  t.throws(() => wordsOf('info', {}), /trace is missing/);
  t.same(wordsOf('tasks', { pid: '5', blocked: true, top: 3 }), ['tasks', '--pid=5', '--blocked', '--top=3', '--json']);
  t.same(toolNames(true).slice(5), ['record', 'run', 'attach', 'detach']);
  t.same(wordsOf('run', { program: 'k', command: ['qemu', '-M'], output: 'x' }), [
    ...['run', '--output=x', '--json', 'k', '--', 'qemu', '-M'],
  ]);
  t.end();
});

t.test('what is no request', async (t) => {
  const child = spawn(process.execPath, [main, 'mcp'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  child.stdin.end(
    'nonsense\n{"jsonrpc":"2.0","id":1,"method":"x"}\n{"id":2,"method":"tools/call","params":{"name":"run"}}\n[]\nnull\n' +
      '5\n[{"id":4,"method":"y"},{"id":5,"method":"z"},7]\n{"method":"notifications/cancelled","params":null}\n{"id":3,"method":"tools/call","params":null}\n',
  );
  const [status] = (await once(child, 'close')) as [number];
  t.equal(status, 0);
  const codes = text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { error: { code: number } }).error.code);
  t.same(codes, [-32700, -32601, -32602, -32700, -32700, -32601, -32601, -32700, -32602]);
});

t.test('a signal ends its calls, too, and a call that was killed has failed', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1');
  t.teardown(() => silent.close());
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const child = spawn(process.execPath, [main, 'mcp'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => JSON.parse((await answers.next()).value ?? 'null') as { id: number; result: Called };
  const call = (id: number): void => {
    const given = { remote: `127.0.0.1:${port}`, program: elfPath('rv-o2'), timeout: '500ms' };
    const params = { name: 'bt', arguments: given };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`);
  };
  call(1);
  let running: string[] = [];
  while (running.length === 0) {
    await sleep(5);
    running = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  }
  process.kill(Number(running[0]), 'SIGKILL');
  const killed = await answer();
  t.match(killed, { id: 1, result: { isError: true } });
  t.match(killed.result.content.at(-1)?.text, /bt was ended by SIGKILL/);
  call(2);
  await once(silent, 'connection');
  // As timeout(1) does.
  child.kill('SIGTERM');
  child.kill('SIGTERM');
  const ended = await answer();
  t.match(ended, { id: 2, result: { isError: true } });
  t.match(ended.result.content.at(-1)?.text, /INTERRUPTED|RSP_/);
  t.strictSame(await closed, [0, null]);
});
