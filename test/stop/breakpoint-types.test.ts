import t from 'tap';
import { connect, type Session } from '../../src/rsp/index.js';
import { scratchFolder } from '../support/command.js';
import { assemble, type CountedProgram, outputOf, STATUS } from '../support/counted-program.js';
import { countingEngine, countUntil } from '../support/counting-engine.js';
import { FakeStub, riscv } from '../support/fake-stub.js';
import { type Board, ROM, TRIGGERS } from '../support/riscv-hart/board.js';
import { startBoard, startOpenocd } from '../support/stub-servers.js';

type Test = Parameters<typeof scratchFolder>[0];

const CALLS = 40;

/** OpenOCD at a board whose program has a part in ROM. */
async function boardWithRom(
  t: Test,
  ...commands: string[]
): Promise<{ program: CountedProgram; board: Board; session: Session }> {
  const folder = scratchFolder(t);
  const program = assemble(folder, { arch: 'riscv64', place: 'machine', calls: CALLS, rom: ROM });
  const board = await startBoard(t, folder, program.elf);
  const session = await connect(await startOpenocd(t, folder, ...commands), { waitMs: 60_000 });
  return { program, board, session };
}

/** Lets the program go on without us. */
async function leave(session: Session, board: Board, program: CountedProgram): Promise<string> {
  await session.memory().write(program.symbol('release'), new Uint8Array([1]));
  await session.detach();
  const status = await board.ended;
  return `${board.output}status ${status}`;
}
const asAlone = (program: CountedProgram): string => `${outputOf(program)}status ${STATUS}`;

for (const told of [true, false]) {
  const how = told ? 'that the memory map tells of' : 'that only reading back tells of';
  t.test(`code in ROM ${how} gets a hardware breakpoint, other code a software one`, async (t) => {
    const { program, board, session } = await boardWithRom(t, ...(told ? [] : ['gdb_memory_map disable']));
    t.equal(
      (await session.memoryRegions()).some(({ type }) => type !== 'ram'),
      told,
    );
    const [work, inRom, arrived] = [program.symbol('work'), program.symbol('rom_work'), program.symbol('arrived')];
    const batch = session.batch();
    const accepted = batch.insertBreakpoint({ type: 0, address: inRom, kind: 2 });
    batch.removeBreakpoint({ type: 0, address: inRom, kind: 2 });
    await batch.send();
    t.equal(accepted.value, true, 'OpenOCD says that a software breakpoint in ROM is there');

    const { hits } = await countUntil(session, 'riscv64', [work, inRom, arrived]);
    t.same(
      hits.get(0),
      new Map([
        [work, CALLS],
        [inRom, CALLS],
        [arrived, 1],
      ]),
    );
    t.same(
      new Map(session.breakpoints.map(({ address, type }) => [address, type])),
      new Map([
        [work, 0],
        [inRom, 1],
        [arrived, 0],
      ]),
    );
    t.equal(await leave(session, board, program), asAlone(program));
  });
}

t.test('hardware breakpoints on request, and what is said when they run out', async (t) => {
  const { program, board, session } = await boardWithRom(t);
  const [work, inRom, arrived] = [program.symbol('work'), program.symbol('rom_work'), program.symbol('arrived')];
  const { hits } = await countUntil(session, 'riscv64', [work, arrived], { hardware: true });
  t.same(
    hits.get(0),
    new Map([
      [work, CALLS],
      [arrived, 1],
    ]),
  );
  t.same(
    session.breakpoints.map(({ type }) => type),
    Array(TRIGGERS).fill(1),
  );
  const { engine } = await countingEngine(session, 'riscv64');
  await t.rejects(engine.points.arm([inRom]), {
    code: 'RSP_BREAKPOINT_REFUSED',
    message: `the target has no hardware breakpoint for a probe at 0x${inRom.toString(16)}: all ${TRIGGERS} that it took are in use`,
    hint: /probe fewer/,
  });
  t.equal(await leave(session, board, program), asAlone(program));
});

t.test('a stub that takes no software breakpoints gets hardware ones', async (t) => {
  const stub = await FakeStub.start(riscv, { 'm*': '41111111', 'Z0*': '', 'Z1*': 'OK', 'z1*': 'OK' });
  await using session = await connect(stub.path);
  const { engine } = await countingEngine(session, 'riscv64');
  await engine.points.arm([0x8020_0000n, 0x8020_0010n].map((value) => value as never));
  t.same(
    session.breakpoints.map(({ type }) => type),
    [1, 1],
  );
  await session.detach();
  await stub[Symbol.asyncDispose]();
});
