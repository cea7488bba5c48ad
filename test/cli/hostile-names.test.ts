// Names with newlines, escape sequences and marks of direction, from an ELF and from a stub, in all that a person sees. What is
// shown of a program with such names has as many lines as what is shown of one with plain names, and no character that a terminal
// obeys; as JSON it is the same data.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addr } from '../../src/base/addr.js';
import { jsonLine, visible, visibleJson } from '../../src/text/visible.js';
import { openTrace, type TraceEvent } from '../../src/trace/index.js';
import { type Ran, rsptrace, scratchFolder } from '../support/command.js';
import { FakeStub, riscv } from '../support/fake-stub.js';
import { hostileElf, program } from '../support/hostile-elf.js';

const EVIL = 'a\n#1  0x80200000 forged::frame\x1b[31m\x1b]0;title\x07\u009b2J\u202egnp.\u2066\u200f\u2028\r\tz';
/** As long, so that columns are as wide. */
const PLAIN = visible(EVIL).replace(/[^a-z]/g, 'x');
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/u;

function onlyVisible(t: Test, text: string, what: string): void {
  const bad = text.split('\n').find((line) => HIDDEN.test(line));
  t.equal(bad, undefined, `${what} shows what it holds`);
}

t.test('what is hidden is written out', async (t) => {
  t.equal(visible('a\n\x1b\u202e\u{e0041}\t\u2028é✓'), 'a\\n\\u{1b}\\u{202e}\\u{e0041}\\t\\u{2028}é✓');
  onlyVisible(t, visible(EVIL), 'a name');
  const value = { [EVIL]: [EVIL, 'é✓\u{e0041}'] };
  t.match(jsonLine(value), /\\u202e.*\\udb40\\udc41/);
  onlyVisible(t, jsonLine(value), 'JSON');
  t.same(JSON.parse(jsonLine(value)), value, 'JSON is the same data');
  t.equal(visibleJson('{"a":"b"}\n'), '{"a":"b"}\n');
});

/** Files of both programs, and memory that holds one of their Futures. */
function files(t: Test): { evil: string; plain: string; ram: string } {
  const folder = scratchFolder(t);
  const [evil, plain, ram] = ['evil', 'plain', 'ram'].map((name) => join(folder, name)) as [string, string, string];
  writeFileSync(evil, hostileElf(EVIL));
  writeFileSync(plain, hostileElf(PLAIN));
  // A boxed dyn Future, and the Future, which awaits for the first time.
  const memory = new DataView(new ArrayBuffer(0x100));
  memory.setBigUint64(0, 0x2040n, true);
  memory.setBigUint64(8, BigInt(program.vtable), true);
  memory.setUint8(0x48, 3);
  writeFileSync(ram, new Uint8Array(memory.buffer));
  return { evil, plain, ram };
}

t.test('of an ELF', async (t) => {
  const { evil, plain, ram } = files(t);
  const memory = ['--core', ram, '--base', '0x2000', '--scan', '0x2000,0x100'];
  const shown: string[][] = [
    ...[[], ['--size'], ['--tree'], ['--dot']].map((how) => ['futures', 'ELF', ...how]),
    ['types', 'ELF', '{async_fn_env#0}'],
    ['tasks', 'ELF', ...memory, '--locals'],
    ['--dry-run', '--remote', ':1', '-p', 'fn:**', 'ELF'],
  ];
  const refused: string[][] = [
    ['futures', 'ELF', `nothing${EVIL}`],
    ['types', 'ELF', `nothing${EVIL}`],
    ['--remote', ':1', '-p', `fn:nothing${EVIL}`, 'ELF'],
  ];
  const run = (command: readonly string[], elf: string): Promise<Ran> =>
    rsptrace(...command.map((word) => (word === 'ELF' ? elf : word))).ended;
  for (const command of [...shown, ...refused]) {
    const what = command.join(' ').slice(0, 40);
    const { stdout, stderr } = await run(command, evil);
    onlyVisible(t, stdout + stderr, what);
    t.match(stdout + stderr, /forged::frame/, `${what}: the names are there`);
    if (refused.includes(command)) continue;
    t.equal(stdout.split('\n').length, (await run(command, plain)).stdout.split('\n').length, 'no line is forged');
    if (/^--(?:size|tree|dot)$/.test(command.at(-1) ?? '')) continue;
    const json = (await run([...command, '--json'], evil)).stdout;
    onlyVisible(t, json, `${what} --json`);
    t.ok(JSON.stringify(JSON.parse(json)).includes('\\n#1  0x80200000 forged::frame'), 'JSON has the name');
  }
  const svg = (await run(['futures', 'ELF', '--svg'], evil)).stdout;
  onlyVisible(t, svg, 'SVG');
  t.match(svg, /forged::frame/);
});

t.test('of a stub', async (t) => {
  const { evil } = files(t);
  const pc = '0410000000000000';
  await using stub = await FakeStub.start(riscv, {
    g: `${'00'.repeat(8 * 32)}${pc}`,
    p20: pc,
    'qThreadExtraInfo*': Buffer.from(EVIL).toString('hex'),
    'm*': 'E01',
  });
  const bt = await rsptrace('bt', '--remote', `unix:${stub.path}`, evil).ended;
  onlyVisible(t, bt.stdout + bt.stderr, 'bt');
  t.match(
    bt.stdout,
    /^hart \S+ {2}a\\n#1 {2}0x80200000 forged::frame\\u\{1b\}/,
    'the hart is called what the stub says',
  );
  t.match(bt.stdout, /function/, 'and the frame what the ELF says');
  t.equal(bt.stdout.split('\n').filter((line) => line.startsWith('#1')).length, 0, 'no frame is forged');
  await using refusing = await FakeStub.start(riscv, { g: `E.${EVIL}` });
  for (const more of [[], ['--log', 'trace']]) {
    const refused = await rsptrace('bt', '--remote', `unix:${refusing.path}`, ...more, evil).ended;
    onlyVisible(t, refused.stdout + refused.stderr, `a refusal ${more}`);
  }
});

t.test('in traces to be read', async (t) => {
  const at = { file: EVIL, line: 3 };
  const fn = { key: 1, name: EVIL, instance: EVIL, address: addr(0x1000), ...at };
  const call = { function: fn, hart: 0, depth: 0, time: 1 };
  const begin = { type: 'call-begin', ...call, arguments: [{ name: EVIL, value: EVIL }] };
  const events = [
    begin,
    { type: 'call-end', ...call, begin, began: 1, time: 9, result: EVIL },
  ] as unknown as readonly TraceEvent[];
  for (const name of ['trace.txt', 'trace.json', 'trace.speedscope.json']) {
    const path = join(scratchFolder(t), name);
    const sink = openTrace(path);
    const harts = [{ number: 0, name: EVIL, id: undefined }];
    sink.begin({ program: EVIL, arch: 'riscv64', clock: { name: EVIL, guest: true }, harts } as unknown as Parameters<
      typeof sink.begin
    >[0]);
    for (const event of events) sink.event(event);
    sink.end();
    const text = readFileSync(path, 'utf8');
    onlyVisible(t, text, name);
    t.match(text, /forged::frame/);
    if (name.endsWith('.txt')) t.equal(text.split('\n').length, 5, 'no line is forged');
  }
});
