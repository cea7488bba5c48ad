// The command itself, at a real QEMU, through a wire with faults: never a hang, the trace is kept, one error, and the guest
// is left as it was wherever the link still works. Most of what is harmed in one way only under `scripts/test --long`.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Command, frozenGuest, type Ran, type Running, rsptrace, scratchFolder } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { children, packetEnds, protoc, readPerfetto } from '../trace/decode-perfetto.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

/** With a stop at each event it lasts for thousands of them; left alone it ends at once. */
const name = 'rv-o2';

interface Traced {
  readonly qemu: Running;
  readonly proxy: FaultProxy;
  readonly tracer: Command;
  readonly trace: string;
}

const probes = ['chain_task', 'joiner', 'producer', 'consumer'].flatMap((future) => ['-p', `poll:${future}`]);

/** The command, recording through a proxy, with a hundred events behind it. */
async function recording(t: Test): Promise<Traced> {
  const qemu = frozenGuest(t, name);
  const proxy = await FaultProxy.start(qemu.socket);
  t.teardown(() => proxy[Symbol.asyncDispose]());
  const trace = join(scratchFolder(t), 'out.pftrace');
  const tracer = rsptrace(
    ...['--remote', proxy.path, '--timeout', '4s', '--scratch', 'none', '--json', '-o', trace, ...probes],
    ...[elfPath(name)],
  );
  await moreStops({ proxy, tracer }, 120);
  return { qemu, proxy, tracer, trace };
}

/** Waits until so many more stops have been handled, or the command has ended. */
async function moreStops({ proxy, tracer }: Pick<Traced, 'proxy' | 'tracer'>, count: number): Promise<void> {
  // Each stop asks for the registers.
  const stops = (): number => proxy.sent.split('$g#').length - 1;
  const until = stops() + count;
  while (stops() < until && !tracer.over()) await new Promise((resolve) => setTimeout(resolve, 10));
}

function cutShort(t: Test, { status, stdout, stderr }: Ran, trace: string, code: RegExp): Recording {
  t.equal(status, 3, stderr);
  const output = JSON.parse(stdout) as Recording;
  t.equal(output.end, 'failed');
  t.match(output.error?.code, code);
  t.ok(output.events > 50, `${output.events} events`);
  // A busy machine may have it say first that nothing comes, which is no error.
  const errors = stderr.split('\n').filter((line) => /^rsptrace: .*\[[A-Z_]+\]$/.test(line));
  t.equal(errors.length, 1, `one clear error: ${stderr}`);
  const bytes = readFileSync(trace);
  const { slices } = readPerfetto(children(protoc(bytes.subarray(0, packetEnds(bytes).at(-1) ?? 0)), 'packet'));
  t.ok(slices.filter(({ category }) => category === 'poll').length > 20, 'the trace is kept');
  return output;
}

/** The guest goes on to its own end: no breakpoint was left in it, and no register is wrong. */
async function runsOn(t: Test, qemu: Running): Promise<void> {
  const { stdout } = await qemu.ended;
  t.equal(parseLab(stdout).checksum, guest(name).checksum, 'with the checksum of an untraced run');
}

t.test('a link that ends while trampolines are put in is no reason for probes to stop', async (t) => {
  const qemu = frozenGuest(t, name);
  let runs = false;
  await using proxy = await FaultProxy.start(qemu.socket, {
    'to-stub': {
      edit(text, proxy) {
        // What is written behind the first hit is written into the room for them.
        if (runs && /\$[MX]/.test(text)) proxy.cut();
        runs ||= text.includes('$vCont;c');
        return text;
      },
    },
  });
  const trace = join(scratchFolder(t), 'out.pftrace');
  const words = ['--remote', proxy.path, '--json', '-o', trace, elfPath(name)];
  const { events, error, probes } = await rsptrace(...words).json<Recording>(3);
  t.match({ events, error }, { events: 0, error: { code: 'RSP_CLOSED' } });
  t.ok(probes.some(({ engine }) => engine === 'target'));
  t.notOk(probes.some(({ why }) => /connection|session/.test(why ?? '')));
});

const once = (from: RegExp, to: string): ((text: string, proxy: FaultProxy) => string) => {
  let done = false;
  return (text, proxy) => {
    if (done || !from.test(text)) return text;
    done = true;
    proxy.harm++;
    return text.replace(from, to);
  };
};

/** Waits for the end of a tracer that may or may not have been hurt by one fault. */
async function afterwards(t: Test, traced: Traced, code: RegExp): Promise<void> {
  const { proxy, tracer, trace } = traced;
  while (proxy.harm === 0 && !tracer.over()) await new Promise((resolve) => setTimeout(resolve, 5));
  await moreStops(traced, 100);
  if (tracer.over()) {
    cutShort(t, await tracer.ended, trace, code);
    return;
  }
  // Some faults are mended by asking again: the recording has gone on.
  tracer.signal('SIGINT');
  const { status, stdout, stderr } = await tracer.ended;
  t.equal(status, 0, stderr);
  t.equal((JSON.parse(stdout) as Recording).end, 'interrupted');
}

const damages = [
  ['dropped', { drop: 0.0003 }],
  ['doubled', { duplicate: 0.0003 }],
  ['turned', { flip: 0.0003 }],
] as const;
for (const [fault, faults] of usually(damages, ([fault]) => fault === 'dropped')) {
  t.test(`bytes are ${fault} on the way back`, async (t) => {
    const traced = await recording(t);
    const { proxy } = traced;
    proxy.faults['to-client'] = faults;
    while (proxy.harm === 0 && !traced.tracer.over()) await new Promise((resolve) => setTimeout(resolve, 5));
    // One fault was enough: the way out is clear.
    proxy.faults['to-client'] = {};
    await afterwards(t, traced, /^RSP_(PROTOCOL|TIMEOUT)$/);
    await runsOn(t, traced.qemu);
  });
}

// Questions only: a change that is lost in the write that also lets the guest go on cannot be made good.
const questions = [
  ['a question is dropped', /\$g#67/, ''],
  ['the start of a question is dropped', /\$g#67/, 'g#67'],
  ['the end of a question is dropped', /\$g#67/, '$g'],
  ['a question is turned', /\$g#67/, '$f#67'],
  ['a question is asked twice', /\$g#67/, '$g#67$g#67'],
  ['a question for memory is turned', /\$m8/, '$m9'],
  ['bytes are put in between', /\$g#67/, 'xyz$g#67'],
] as const;
// A NAK, an answer too many. test/rsp/faults.test.ts harms a wire in many more ways.
const chosen = ['a question is turned'];
for (const [fault, from, to] of usually(questions, ([fault]) => chosen.includes(fault))) {
  t.test(`on the way there, ${fault}`, async (t) => {
    const traced = await recording(t);
    traced.proxy.faults['to-stub'] = { edit: once(from, to) };
    await afterwards(t, traced, /^RSP_(PROTOCOL|TIMEOUT)$/);
    await runsOn(t, traced.qemu);
  });
}

t.test('an answer that comes after its time-out', async (t) => {
  const { qemu, proxy, tracer, trace } = await recording(t);
  let held = '';
  const passed = proxy.sent.length;
  const hold = {
    edit: (text: string): string => {
      held += text;
      return '';
    },
  };
  // From the middle of a stop on: a stop that is held back is none to the client, which waits for it.
  proxy.faults['to-stub'] = {
    edit: (text) => {
      if (text.includes('$g#')) proxy.faults['to-client'] = hold;
      return text;
    },
  };
  // Until the link asks who is there.
  while (!proxy.sent.slice(passed).includes('$qSupported') && !tracer.over()) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  proxy.faults['to-stub'] = {};
  proxy.faults['to-client'] = {};
  proxy.say(held);
  cutShort(t, await tracer.ended, trace, /^RSP_TIMEOUT$/);
  await runsOn(t, qemu);
});

t.test('a wire that is cut, swallows everything, or is closed by halves', async (t) => {
  const ways: [string, (proxy: FaultProxy) => void][] = [
    ['cut', (proxy) => proxy.cut()],
    ['swallowed', (proxy) => proxy.swallow()],
    ['closed towards the client', (proxy) => proxy.halfClose('to-client')],
  ];
  // One that is cut while trampolines are put in is above.
  for (const [way, harm] of usually(ways, ([way]) => way === 'closed towards the client')) {
    const { proxy, tracer } = await recording(t);
    // In the middle of a stop, where answers are owed.
    proxy.faults['to-stub'] = {
      edit: (text) => {
        if (text.includes('$g#')) setImmediate(harm, proxy);
        return '';
      },
    };
    const { status, stdout, stderr } = await tracer.ended;
    t.equal(status, 3, `${way}: ${stderr}`);
    const output = JSON.parse(stdout) as Recording;
    t.match(output.error?.code, /^RSP_(CLOSED|TIMEOUT)$/, way);
    t.ok(output.events > 50);
  }
});
