// `rsptrace doctor` at a process under gdbserver, and at a hart behind OpenOCD.
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { assemble } from '../support/counted-program.js';
import { runDoctor } from '../support/doctor.js';
import { compileC, compileReleased, gdbserver, pollsProgram, symbolOf } from '../support/native.js';
import { TRIGGERS } from '../support/riscv-hart/board.js';
import { startBoard, startOpenocd } from '../support/stub-servers.js';

t.test('gdbserver: where the program is loaded, and that it prints what it prints undisturbed', async (t) => {
  const program = pollsProgram(t);
  const undisturbed = (await start(program, ['alone']).ended).stdout;
  const server = await gdbserver(t, program, 'alone');
  const { found, status, stderr } = await runDoctor(server.address, '-p', 'fn:polls::main', program);
  t.equal(status, 0, stderr);
  t.match(found.stub, { server: 'gdbserver', server_version: null, no_ack: true, breakpoints: [0, 1, 2, 4] });
  t.equal(found.stub.hardware_breakpoints, 4, 'as many as x86 has debug registers');
  t.match(found.harts[0], { mode: null, paging: null, registers: [] }, 'a process has no such registers');
  const { program: about } = found;
  t.match(about, { problem: null, compared: 1, same: 1 });
  const [probe] = about?.probes ?? [];
  t.equal(
    BigInt(probe?.address ?? 0) - BigInt(about?.load_bias ?? 0),
    symbolOf(program, 'polls::main'),
    'loaded elsewhere',
  );
  t.match(about?.scratch, { source: /^memory mapped into process \d+/ }, 'as a recording has it');
  t.equal(probe?.engine, 'target');
  t.equal((await server.ended).stdout, undisturbed);
});

t.test(
  'probes of a process that need stops: as many as its recording stops at, which a machine would not bear',
  async (t) => {
    const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
    // Each loop begins at its first instruction.
    const loops = numbers(60).map(
      (i) => `.type g${i}, @function\\ng${i}: dec %edi\\njnz g${i}\\nret\\n.size g${i}, . - g${i}\\n`,
    );
    const others = numbers(100).map(
      (i) => `__attribute__((noinline)) int f${i}(int a) { volatile int b = a; return b * ${i}; }`,
    );
    const program = compileC(t, `__asm__("${loops.join('')}");\n${others.join('\n')}\nint main() { return 0; }`);
    const { address } = await gdbserver(t, program);
    const probes = ['-p', 'fn:f?*', '-p', 'fn:g?*'];
    const { found } = await runDoctor(address, '--no-run', ...probes, program);
    const run = rsptrace('run', '--json', '-o', `${program}.pftrace`, ...probes, program);
    const { engines } = await run.json<{ readonly engines: object }>();
    const counts = { without_stops: 100, stopping: 60, left_out: 0 };
    t.match(engines, counts, 'a recording');
    t.match(found.program?.engines, counts);
  },
);

t.test('a program that ends meanwhile: what was seen of it, and why there is no rate', async (t) => {
  const program = compileReleased(t, 'again.c');
  const server = await gdbserver(t, program);
  // Once passed: there is no rate, wherever in the search it ends.
  const { found, status, stderr } = await runDoctor(server.address, '-p', 'fn:main', program);
  t.equal(status, 0, stderr);
  t.match(found.hits, { per_second: null, guest_ended: true });
  t.match(
    found.hits.why,
    /^the guest ended after it had run for \d+ ms, while .* \(hits until then: [01], places: [01]\), so no rate is known$/,
  );
  t.match((await server.ended).stdout, /^calls again=60 spin=60$/m, 'undisturbed');
});

t.test('OpenOCD: triggers, memory map, the hart as the board has it; no trap instruction stays', async (t) => {
  const folder = scratchFolder(t);
  const program = assemble(folder, { arch: 'riscv64', place: 'machine', calls: 1_000_000 });
  const board = await startBoard(t, folder, program.elf);
  const address = await startOpenocd(t, folder);
  const { pc } = board.hart;
  const text = Number(program.symbol('_start'));
  const code = (): Uint8Array | undefined => board.hart.bus.read(text, 0x100)?.slice();
  const before = code();
  const { found, status, stderr } = await runDoctor(address, '--timeout', '20s', program.elf);
  t.equal(status, 0, stderr);
  t.match(found.stub, { server: 'openocd', hardware_breakpoints: TRIGGERS });
  t.same(found.stub.breakpoints, [0, 1, 2, 3, 4], 'its triggers are for data, too');
  t.match(found.stub.server_version, /^Open On-Chip Debugger \d/);
  t.ok(found.stub.memory_map?.some(({ type }) => type === 'flash'));
  t.match(found.harts[0], { pc: `0x${pc.toString(16)}`, mode: 'machine', paging: { scheme: 'off' } });
  t.ok((found.hits.per_second ?? 0) > 0 || found.hits.why !== undefined);
  t.same(code(), before, 'its code is as it was');
  t.ok(found.advice.some(({ code: name }) => name === 'few-hardware-breakpoints'));
});

t.test('what cannot be examined', async (t) => {
  const replay = await rsptrace('doctor', '-r', 'replay:wire.jsonl').ended;
  t.equal(replay.status, 2);
  t.match(replay.stderr, /\[USAGE\]/);
  t.match(await rsptrace('doctor', '-r', ':1', '--json', '/no/such.elf').json(1), {
    version: 1,
    error: { code: 'ELF_UNREADABLE' },
  });
});
