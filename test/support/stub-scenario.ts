// One scenario for every stub: what rsptrace relies on, from the handshake to a program that ends as it would have alone.
import type { Test } from 'tap';
import { addOffset, addr } from '../../src/base/addr.js';
import { silent } from '../../src/base/logger.js';
import {
  type Breakpoint,
  connect,
  type Session,
  type SignalStop,
  type StopReply,
  WireRecorder,
} from '../../src/rsp/index.js';
import { scratchFolder } from './command.js';
import { assemble, type CountedProgram, outputOf, STATUS } from './counted-program.js';
import { observeFeatures, PacketLog, type StubRow } from './stub-row.js';
import { type Guest, type StubServer, versionOf } from './stub-servers.js';

/** Runs the scenario at a stub of its own; returns what the table says of it. */
export async function stubScenario(t: Test, server: StubServer): Promise<StubRow> {
  const { address, program, guest } = await server.start(t);
  return scenario(t, server, address, program, guest);
}

/** The same with so many calls, and a recording of the wire in `path`. */
export async function recordScenario(t: Test, server: StubServer, calls: number, path: string): Promise<StubRow> {
  const { address, program, guest } = await server.start(t, calls);
  using wire = new WireRecorder(path);
  return await scenario(t, server, address, program, guest, wire);
}

/** The same at a recording: whatever the stub said then has to fit what is asked now. */
export function replayScenario(t: Test, server: StubServer, calls: number, path: string): Promise<StubRow> {
  return scenario(t, server, `replay:${path}`, assemble(scratchFolder(t), { ...server.program, calls }), undefined);
}

async function scenario(
  t: Test,
  server: StubServer,
  address: string,
  program: CountedProgram,
  guest: Guest | undefined,
  recordWire?: WireRecorder,
): Promise<StubRow> {
  const log = new PacketLog();
  let printed = '';
  const session = await connect(address, {
    waitMs: 60_000,
    recordWire,
    logger: { ...silent, ...log.logger },
    onConsole: (text) => {
      printed += new TextDecoder().decode(text);
    },
  });
  const riscv = program.arch === 'riscv64';
  const pc = riscv ? 'pc' : 'rip';
  const kind = riscv ? 2 : 1;
  const at = (symbol: string): Breakpoint => ({ type: 0, address: program.symbol(symbol), kind });
  const memory = session.memory();

  // Registers and memory
  const first = session.batch();
  const start = first.readRegisters([pc]);
  await first.send();
  t.type(start.value.register(pc), 'bigint', 'the pc is known');
  const scratch = program.symbol('scratch');
  const original = await memory.read(scratch, 32);
  const features = await observeFeatures(session, { code: program.symbol('work'), data: scratch, kind });
  const nothing = await memory.read(addr(server.unmapped), 8);
  if (nothing !== undefined) log.quirks.add('memory that is not there reads as zeros');

  // Several requests in one write
  const batch = session.batch();
  const pieces = [0, 8, 16, 24].map((offset) => batch.readMemory(addOffset(scratch, offset), 8));
  const again = batch.readRegisters([pc]);
  await batch.send();
  t.same(Buffer.concat(pieces.map((piece) => piece.value ?? new Uint8Array())), Buffer.from(original ?? []), 'a batch');
  t.equal(again.value.register(pc), start.value.register(pc));
  if (!session.features.batches) log.quirks.add('gets its packets one by one: a batch hangs or delays it');

  // The program counts the calls itself: as many hits, and none twice.
  t.equal(await session.insertBreakpoint(at('work')), true, 'a breakpoint at work');
  t.equal(await session.insertBreakpoint(at('arrived')), true, 'and one behind all calls');
  t.equal(await memory.write(program.symbol('begin'), new Uint8Array([1])), true);
  log.listening = false;
  const began = performance.now();
  const hits = await countHits(session, pc, at('work'), program.symbol('arrived'));
  const seconds = (performance.now() - began) / 1000;
  log.listening = true;
  const counters = await memory.read(program.symbol('counters'), 8 * program.harts);
  t.same(hits.wrong, [], 'every call is seen once, in order, on its own hart');
  t.same(
    [...hits.calls.values()],
    Array(program.harts).fill(program.calls / program.harts),
    'each hart called so often',
  );
  t.same(numbers(counters), Array(program.harts).fill(program.calls / program.harts), 'and says so itself');
  log.stop(hits.last);

  // The program was loaded by now, whoever loads it.
  t.equal(latin1(await memory.read(scratch, 32)), '0123456789abcdefghijklmnopqrstuv', 'memory');
  t.equal(await memory.write(scratch, new TextEncoder().encode('written here')), true);
  t.equal(latin1(await memory.read(scratch, 16)), 'written herecdef', 'memory that was written');
  if (original !== undefined) t.equal(await memory.write(scratch, original), true);
  await writesRegister(t, session, riscv ? 's11' : 'r15');

  // Interrupt
  t.equal(await session.removeBreakpoint(at('work')), true);
  t.equal(await session.removeBreakpoint(at('arrived')), true);
  const run = session.resume();
  await new Promise((done) => setTimeout(done, 20));
  t.equal(session.state.kind, 'running', 'the program spins');
  const interrupted = session.interrupt();
  if (server.deaf === true) {
    log.quirks.add('hears no interrupt while the program runs: its process needs a SIGINT');
    if (guest) {
      const nothing = new Promise<undefined>((done) => setTimeout(done, 1000, undefined));
      t.equal(await Promise.race([interrupted, nothing]), undefined, 'it hears no interrupt');
      guest.process.kill('SIGINT');
    }
  }
  const stop = await interrupted;
  t.match(stop, { kind: 'signal' }, 'it can be interrupted');
  t.equal(await run, stop);
  if (stop.kind === 'signal' && stop.signal !== 2) log.quirks.add(`an interrupt is reported as signal ${stop.signal}`);

  // Leaving
  t.equal(await session.insertBreakpoint(at('work')), true, 'one that is still there when we leave');
  t.equal(await memory.write(program.symbol('release'), new Uint8Array([1])), true);
  if (server.printsThroughStub === true) {
    log.quirks.add('the program prints through the stub, and not at all once it is left');
    t.match(await session.resume(), { kind: 'exited', status: STATUS });
    t.equal(printed.replaceAll('\r', ''), outputOf(program), 'it ends with its own output');
  } else {
    await session.detach();
    const ended = await guest?.ended;
    if (ended) t.match(ended.stdout, outputOf(program), 'it ends with its own output');
    if (ended && server.hidesStatus !== true) t.equal(ended.status, STATUS, 'and with its own status');
  }
  // Nothing is asked any more: it was found out before, or the handshake has told.
  t.equal((await session.stub()).name, server.stub, 'which server it is');
  return {
    stub: server.name,
    version: versionOf(server.binary),
    ...features,
    quirks: [...log.quirks].sort(),
    hitsPerSecond: program.calls / seconds,
  };
}

interface Hits {
  /** By hart id: how often it called `work`. */
  readonly calls: ReadonlyMap<string, number>;
  /** What does not fit: hits with an argument that was not the next one. */
  readonly wrong: readonly string[];
  readonly last: SignalStop;
}

/** Runs to `end`, stopping at each call of `work(call, hart)`. */
export async function countHits(session: Session, pc: string, work: Breakpoint, end: bigint): Promise<Hits> {
  const calls = new Map<string, number>();
  const wrong: string[] = [];
  const numbers = new Map<string, bigint>();
  const [call, hartNumber] = pc === 'pc' ? ['a0', 'a1'] : ['rdi', 'rsi'];
  let stop: StopReply = await session.resume();
  for (;;) {
    if (stop.kind !== 'signal' || stop.signal !== 5)
      throw new Error(`it stops with ${JSON.stringify(stop.kind)} ${'signal' in stop ? stop.signal : ''}`);
    const hart: string = stop.hart ?? '0';
    const value = await readSome(session, stop.hart, [pc, call as string, hartNumber as string]);
    if (value(pc) === end) return { calls, wrong, last: stop };
    if (value(pc) === work.address) {
      const before = calls.get(hart) ?? 0;
      const number = numbers.get(hart) ?? value(hartNumber);
      if (value(call) !== BigInt(before) || value(hartNumber) !== number)
        wrong.push(`hart ${hart}: call ${value(call)} after ${before} calls`);
      numbers.set(hart, number);
      calls.set(hart, before + 1);
      await stepPast(session, hart, pc, work);
    } else if (wrong.length > 100) throw new Error(`it stops at 0x${value(pc).toString(16)} again and again`);
    else wrong.push(`hart ${hart} stops at 0x${value(pc).toString(16)}`);
    stop = await session.resume();
  }
}

/** A few registers: one by one where the stub can, which a probe on a slow wire is grateful for. */
async function readSome(
  session: Session,
  hart: string | undefined,
  names: readonly string[],
): Promise<(name: string | undefined) => bigint> {
  const batch = session.batch(hart);
  const singles = session.features.singleRegister ? names.map((name) => batch.readRegister(name)) : undefined;
  const block = singles === undefined ? batch.readRegisters(names) : undefined;
  await batch.send();
  return (name = '') => singles?.[names.indexOf(name)]?.value ?? block?.value.register(name) ?? -1n;
}

/** A step may execute nothing when an interrupt was pending. */
async function stepPast(session: Session, hart: string, pc: string, breakpoint: Breakpoint): Promise<void> {
  for (let tries = 0; tries < 16; tries++) {
    await session.stepOver(hart, breakpoint);
    const value = await readSome(session, hart, [pc]);
    if (value(pc) !== breakpoint.address) return;
  }
  throw new Error('a step does not move the pc');
}

async function writesRegister(t: Test, session: Session, name: string): Promise<void> {
  const read = session.batch();
  const before = read.readRegisters([name]);
  await read.send();
  const write = session.batch();
  const written = write.writeRegister(name, 0x1234_5678_9abcn);
  await write.send();
  t.equal(written.value, true, `${name} can be written`);
  const check = session.batch();
  const after = check.readRegisters([name]);
  await check.send();
  t.equal(after.value.register(name), 0x1234_5678_9abcn);
  const restore = session.batch();
  restore.writeRegister(name, before.value.register(name) ?? 0n);
  await restore.send();
}

const numbers = (bytes: Uint8Array | undefined): number[] =>
  bytes === undefined ? [] : [...new BigUint64Array(bytes.slice().buffer)].map(Number);

const latin1 = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('latin1');
