// What rsptrace holds while it traces for long: the real command at a stub that never tires. The stub answers the handshake
// as QEMU did in test/wire, then stops at one poll function and at its return, over and over: 64 Futures, each polled to
// Pending, then to Ready, then made anew at the same place. Prints resident memory as it goes (a MB is 10^6 bytes); fails past --limit.
//   node scripts/bench-memory.mjs [--hits N] [--limit MB] [--output FILE.pftrace]
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { findFutures, stateOf } from '../dist/async/futures/index.js';
import { prepare } from '../dist/record/index.js';

const root = resolve(import.meta.dirname, '..');
const { values } = parseArgs({
  options: {
    hits: { type: 'string', default: '10000000' },
    limit: { type: 'string', default: '150' },
    output: { type: 'string' },
  },
});
const hits = Number(values.hits);
const limit = Number(values.limit);
const elf = join(root, 'test/qemu/guests/elf/rv-o2-long.elf');

const folder = mkdtempSync(join(tmpdir(), 'rsptrace-memory-'));
const socketPath = join(folder, 'stub');
let trace = values.output;
if (trace === undefined) {
  // 10 M hits are gigabytes of trace: what counts here is what stays behind in memory.
  trace = join(folder, 'out.pftrace');
  symlinkSync('/dev/null', trace);
}

const program = await prepare(elf, []);
const futureTypes = findFutures(program.debug).all;
const producer = futureTypes.find(({ future }) => future.endsWith('::producer'));
const other = futureTypes.find(({ future }) => future.endsWith('::leaf_io'));
const { size } = producer;
const pollAddress = Number(producer.polls[0].address);

/** The Future's bytes in a state, found by trying: the engine under test shows which byte says it. */
function bytesIn(state) {
  for (let offset = 0; offset < size; offset++) {
    for (let tag = 0; tag < 16; tag++) {
      const bytes = new Uint8Array(size);
      bytes[offset] = tag;
      if (stateOf(producer, bytes)?.name === state) return Buffer.from(bytes).toString('hex');
    }
  }
  throw new Error(`no byte makes ${producer.future} ${state}`);
}
const states = ['Unresumed', 'Suspend0', 'Returned'].map(bytesIn);

const known = new Map();
// What the client says that it can do has grown since.
const keyOf = (packet) => packet.replace(/^(qSupported):.*/s, '$1');
let asked;
for (const line of readFileSync(join(root, 'test/wire/qemu-7.2-riscv64.jsonl'), 'utf8').split('\n')) {
  const { to, text = '' } = line === '' ? {} : JSON.parse(line);
  const packet = /\$(.*)#..$/s.exec(text)?.[1];
  if (packet === undefined) continue;
  if (to === 'stub') asked = packet;
  else known.set(keyOf(asked), packet);
}

const little = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes.toString('hex');
};
function frame(data) {
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum += data.charCodeAt(i);
  return `+$${data}#${(sum & 0xff).toString(16).padStart(2, '0')}`;
}

const futures = Array.from({ length: 64 }, (_, i) => ({ address: 0x80400000 + i * 0x100, state: 0 }));
const stack = 0x80800000;
const returnAddress = Number(other.polls[0].address) + 2;
let hit = 0;
let ticks = 0;
let stepped = 0;
const future = () => futures[(hit >> 1) % futures.length];
const atEntry = () => (hit & 1) === 1;

const texts = new Map();
/** A stub that is slower than what it feeds would measure itself. */
function text(value) {
  let known = texts.get(value);
  if (known === undefined) {
    known = little(value);
    texts.set(value, known);
  }
  return known;
}
const between = text(0).repeat(7);
const behind = text(0).repeat(21);
function registers() {
  const argument = atEntry() ? future().address : 0;
  const pc = (atEntry() ? pollAddress : returnAddress) + stepped;
  return text(0) + text(returnAddress) + text(stack) + between + text(argument) + behind + text(pc);
}

function memory(address, length) {
  const found = futures.find((each) => each.address === address);
  const code = found === undefined && program.elf.bytesAt(BigInt(address), length);
  if (code) return Buffer.from(code).toString('hex');
  return (found === undefined ? '' : states[found.state]).padEnd(2 * length, '0').slice(0, 2 * length);
}

function answer(packet) {
  const first = packet[0];
  if (packet.startsWith('vCont;s')) {
    stepped = 4;
    return 'T05thread:p01.01;';
  }
  if (packet.startsWith('vCont;c')) {
    stepped = 0;
    if (hit >= hits) return 'W00';
    // Between the two the poll has run: to Pending, to Ready; behind that the place holds a new Future.
    if (atEntry()) future().state = (future().state + 1) % 3;
    hit++;
    if (atEntry() && future().state === 2) future().state = 0;
    return 'T05thread:p01.01;';
  }
  if (packet === 'g') return registers();
  if (packet === 'pc43') {
    ticks += 10;
    return little(ticks);
  }
  if (first === 'm') {
    const [address, length] = packet
      .slice(1)
      .split(',')
      .map((each) => Number.parseInt(each, 16));
    return memory(address, length);
  }
  if ('ZzPMHD'.includes(first)) return 'OK';
  return known.get(keyOf(packet)) ?? '';
}

const server = net.createServer((socket) => {
  let rest = '';
  socket.setEncoding('latin1');
  socket.on('error', () => {});
  socket.on('data', (text) => {
    rest += text;
    let out = '';
    for (;;) {
      const start = rest.indexOf('$');
      const end = start < 0 ? -1 : rest.indexOf('#', start);
      if (end < 0 || rest.length < end + 3) break;
      out += frame(answer(rest.slice(start + 1, end)));
      rest = rest.slice(end + 3);
    }
    if (out !== '') socket.write(out, 'latin1');
  });
});
await new Promise((done) => server.listen(socketPath, done));

const began = performance.now();
const child = spawn(
  process.execPath,
  [
    join(root, 'dist/cli/main.js'),
    '--remote',
    socketPath,
    '-p',
    `poll:${producer.future}`,
    '--json',
    '--engine',
    'stop',
    '-o',
    trace,
    elf,
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
let stdout = '';
child.stdout.setEncoding('utf8').on('data', (text) => {
  stdout += text;
});
const resident = (field) => {
  try {
    const found = new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'));
    return (Number(found?.[1] ?? 0) * 1024) / 1e6;
  } catch {
    return 0;
  }
};
let peak = 0;
let next = hits / 10;
const watch = setInterval(() => {
  peak = Math.max(peak, resident('VmHWM'));
  if (hit < next) return;
  next += hits / 10;
  const seconds = (performance.now() - began) / 1000;
  console.log(`${hit} hits  ${resident('VmRSS').toFixed(0)} MB  ${((seconds * 1e6) / hit).toFixed(0)} us a hit`);
}, 100);
const status = await new Promise((done) => child.once('close', done));
clearInterval(watch);
server.close();
rmSync(folder, { recursive: true, force: true });
const { events, futures: [row] = [] } = status === 0 ? JSON.parse(stdout) : {};
console.log(
  `${hit} hits, ${events} events, ${row?.polls} polls (${row?.ready} ready); at most ${peak.toFixed(0)} MB resident`,
);
// Each place is polled in turn, and every second poll of it is the last.
const ready = futures.reduce((sum, _, i) => sum + Math.floor(Math.ceil((hits / 2 - i) / futures.length) / 2), 0);
const asExpected = status === 0 && hit === hits && row?.polls === hits / 2 && row?.ready === ready;
if (!asExpected) console.log('not as expected');
if (peak > limit) console.log(`more than ${limit} MB`);
process.exitCode = asExpected && peak <= limit ? 0 : 1;
