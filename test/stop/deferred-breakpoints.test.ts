// Code that comes late to a hart behind OpenOCD, which writes trap instructions into RAM: the board is in this process, so that its memory is seen
// while the hart runs. The program counts its calls.
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { architectureNamed } from '../../src/arch/index.js';
import type { Addr } from '../../src/base/addr.js';
import { parseProbe, resolveWatches, type WatchSpec } from '../../src/probes/index.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { Watchpoints } from '../../src/stop/index.js';
import { scratchFolder } from '../support/command.js';
import { assemble, type CountedProgram, outputOf, STATUS } from '../support/counted-program.js';
import { countingEngine } from '../support/counting-engine.js';
import type { Board } from '../support/riscv-hart/board.js';
import { startBoard, startOpenocd } from '../support/stub-servers.js';

const CALLS = 20;

interface Late {
  readonly program: CountedProgram;
  readonly board: Board;
  readonly session: Session;
  /** What the ELF has there. */
  readonly code: (address: Addr, length: number) => Uint8Array | undefined;
  /** Where code comes late. */
  readonly there: () => Uint8Array;
  readonly load: () => void;
}

/** A program that waits for `begin`, with zeros where its functions will be. */
async function withoutFunctions(t: Test): Promise<Late> {
  const folder = scratchFolder(t);
  const program = assemble(folder, { arch: 'riscv64', place: 'machine', calls: CALLS, waits: true });
  const board = await startBoard(t, folder, program.elf);
  const [work, end] = [program.symbol('work'), program.symbol('arrived') + 4n];
  const there = (): Uint8Array => board.hart.bus.read(Number(work), Number(end - work)) ?? new Uint8Array();
  const all = there().slice();
  there().fill(0);
  const code = (address: Addr, length: number): Uint8Array | undefined => {
    const offset = Number(address - work);
    return address >= work && address + BigInt(length) <= end ? all.subarray(offset, offset + length) : undefined;
  };
  const session = await connect(await startOpenocd(t, folder), { waitMs: 60_000 });
  return { program, board, session, code, there, load: () => there().set(all) };
}

async function follow(t: Test, late: Late, watches: Watchpoints | undefined, types: readonly number[]): Promise<void> {
  const { program, board, session, code, there, load } = late;
  const [work, arrived] = [program.symbol('work'), program.symbol('arrived')];
  const onHit = (pc: bigint): boolean => pc === arrived;
  const { engine, hits } = await countingEngine(session, 'riscv64', { code, onHit, ...(watches ? { watches } : {}) });
  await engine.points.arm([work, arrived]);
  await watches?.arm();
  t.same(engine.waiting, [work, arrived]);
  const run = engine.run();
  while (session.state.kind !== 'running') await turn();
  t.same(
    session.breakpoints.filter(({ type }) => type < 2).map(({ type }) => type),
    types,
    'what waits in their place',
  );
  t.ok(
    there().every((byte) => byte === 0),
    'nothing is written where the code is not',
  );
  load();
  // Without hardware breakpoints it is found at the next look; with them at the first call.
  const loaded = there().slice();
  if (types.length === 0) while (Buffer.compare(there(), loaded) === 0) await turn();
  board.hart.bus.write(Number(program.symbol('begin')), new Uint8Array([1]));
  t.equal((await run).kind, 'asked');
  t.same(
    hits.get(0),
    new Map([
      [work, CALLS],
      [arrived, 1],
    ]),
    'every call',
  );
  t.same(engine.waiting, []);
  t.same(
    session.breakpoints.filter(({ type }) => type < 2).map(({ type }) => type),
    [0, 0],
    'software breakpoints by now: it is RAM',
  );
  await engine.settle();
  await session.memory().write(program.symbol('release'), new Uint8Array([1]));
  await session.detach();
  t.equal(await board.ended, STATUS);
  t.equal(board.output, outputOf(program));
}

t.test('triggers wait in their place', async (t) => {
  await follow(t, await withoutFunctions(t), undefined, [1, 1]);
});

t.test('no trigger is left: the hart is interrupted to look', async (t) => {
  const late = await withoutFunctions(t);
  const { session, program } = late;
  const arch = architectureNamed('riscv:rv64');
  if (!arch) throw new Error('no riscv64');
  const scratch = program.symbol('scratch');
  const specs = [0n, 8n].map((offset) => parseProbe(`watch:0x${(scratch + offset).toString(16)},8`) as WatchSpec);
  const places = await resolveWatches(specs, undefined, session.memory());
  await follow(t, late, new Watchpoints({ session, arch, places, emit: () => {} }), []);
});
