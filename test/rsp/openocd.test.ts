import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { silent } from '../../src/base/logger.js';
import { connect } from '../../src/rsp/index.js';
import { scratchFolder } from '../support/command.js';
import { assemble } from '../support/counted-program.js';
import { startBoard, startOpenocd } from '../support/stub-servers.js';

const ELSEWHERE = addr(0x4000_0000);

t.test('memory that is not there: zeros, or an error where OpenOCD is told to report it', async (t) => {
  for (const reported of [false, true]) {
    const folder = scratchFolder(t);
    const program = assemble(folder, { arch: 'riscv64', place: 'machine', calls: 1 });
    await startBoard(t, folder, program.elf);
    const commands = reported ? ['gdb_report_data_abort enable'] : [];
    await using session = await connect(await startOpenocd(t, folder, ...commands), { waitMs: 60_000 });
    t.same(await session.memory().read(ELSEWHERE, 8), reported ? undefined : new Uint8Array(8));
    t.same(await session.memory().read(program.symbol('scratch'), 4), new TextEncoder().encode('0123'), 'and goes on');
  }
});

t.test('keep-alives and log lines while a slow wire works', async (t) => {
  const folder = scratchFolder(t);
  const program = assemble(folder, { arch: 'riscv64', place: 'machine', calls: 1 });
  const board = await startBoard(t, folder, program.elf);
  const heard: string[] = [];
  const logger = {
    ...silent,
    isLevelEnabled: (level: string) => level === 'trace',
    trace: (_fields: object, message: string) => void heard.push(message),
  };
  await using session = await connect(await startOpenocd(t, folder), { waitMs: 60_000, logger });
  heard.length = 0;
  board.latencyMs = 20;
  t.same(await session.memory().read(program.symbol('scratch'), 8), new TextEncoder().encode('01234567'));
  const { hart } = board;
  const before = hart.pc;
  t.match(await session.resume({ kind: 'step', hart: '0' }), { kind: 'signal', signal: 5 });
  t.not(hart.pc, before, 'a step');
  t.ok(heard.filter((line) => line === '<- O').length >= 2, 'empty console packets come before the stop');
  board.latencyMs = 0;
});
