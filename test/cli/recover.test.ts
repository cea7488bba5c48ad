// `rsptrace recover`: the trace of a recording that was killed, out of the records beside it.
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { rawLogMagic } from '../../src/inject/index.js';
import { parseProbe } from '../../src/probes/index.js';
import { KeptRecords, prepare } from '../../src/record/index.js';
import { elfPath, parseLab, qemuArgv } from '../qemu/guests/guests.js';
import { main, rsptrace, rsptraceProcess, scratchFolder, start } from '../support/command.js';
import { long, usually } from '../support/long.js';
import { randomOf } from '../support/mutations.js';
import { compileC, compileReleased, pollsProgram } from '../support/native.js';
import { functionProbes } from '../support/native-trace.js';
import { storyPlugin } from '../support/story.js';

const story = storyPlugin(`(event) => {
  const name = event.function?.name ?? event.future?.instance ?? event.waker ?? '';
  return [event.type, event.time, event.hart, name, event.address, event.depth, event.result, event.state?.name,
    event.arguments?.map((one) => one.name + '=' + one.value), event.root?.key, event.began].join(' ');
}`);

/** Records a guest to its end. */
function recorded(t: Test, name: string, ...options: string[]) {
  return recordedFrom(t, [...options, elfPath(name), '--', ...qemuArgv(name)]);
}

/** What `run` runs, to its end; a copy of the records lies where those of a killed recording would. */
async function recordedFrom(t: Test, asked: readonly string[]) {
  const folder = scratchFolder(t);
  const [plugin, trace, again] = [join(folder, 'story.mjs'), join(folder, 'a.story'), join(folder, 'b.story')];
  writeFileSync(plugin, story);
  const words = ['--plugin', plugin, '--json', '--engine', 'target', '-o', trace, ...asked];
  const ran = await rsptrace('run', ...words).ended;
  t.equal(ran.status, 0, ran.stderr.slice(-300));
  t.notOk(existsSync(`${trace}.records`), 'a recording that ended keeps no records');
  copyFileSync(`${trace}.kept`, `${again}.records`);
  return { plugin, trace, again, said: JSON.parse(ran.stdout) as { records: number; events: number } };
}

const recordings = [
  ['rv-o2', '-p', 'poll:**', '-p', 'fn:labkern::work::deep*'],
  ['x86-o2', '-p', 'poll:**', '-p', 'fn:**'],
  ['rv-sched', '-p', 'fn:**', '--no-args'],
] as const;

type Paths = [string, string, string];
type Recorded = Awaited<ReturnType<typeof recorded>>;
type Ended = Awaited<ReturnType<typeof rsptrace>['ended']>;

/** Recovers the records, and compares the events with those of the recording. */
async function comesAgain(
  t: Test,
  { plugin, trace, again, said }: Recorded,
  plain = (line: string) => line,
): Promise<void> {
  const { records, events, notes } = await rsptrace('recover', again, '--plugin', plugin, '--json').json<{
    records: number;
    events: number;
    notes: string[];
  }>();
  t.equal(records, said.records);
  t.equal(events, said.events);
  const lines = readFileSync(trace, 'utf8').split('\n').map(plain);
  const recovered = readFileSync(again, 'utf8').split('\n').map(plain);
  t.same(recovered.slice(0, 2000), lines.slice(0, 2000));
  t.ok(recovered.join('\n') === lines.join('\n'), `${lines.length} lines`);
  t.notOk(existsSync(`${again}.records`), 'they are not needed any more');
  t.same(notes, []);
}

t.test('a trace that cannot be ended keeps its records, and says so', async (t) => {
  const folder = scratchFolder(t);
  const [failing, plugin, trace] = [join(folder, 'failing.mjs'), join(folder, 'story.mjs'), join(folder, 'a.story')];
  writeFileSync(plugin, story);
  const end = "end() { throw new Error('the disk is gone'); }";
  writeFileSync(
    failing,
    `import own from './story.mjs';
    const [format] = own.formats;
    export default { formats: [{ ...format, open: (...given) => ({ ...format.open(...given), ${end} }) }] };`,
  );
  const words = ['-p', 'fn:labkern::work::deep*', '--engine', 'target', '-o', trace, elfPath('rv-o2')];
  // Its process ends: the failing plug-in has not closed the file.
  const ran = await rsptraceProcess('run', '--plugin', failing, '--json', ...words, '--', ...qemuArgv('rv-o2')).ended;
  t.equal(ran.status, 3);
  t.match(ran.stderr, new RegExp(`its records are kept: rsptrace recover ${trace} makes the trace of them`));
  const { events } = JSON.parse(ran.stdout) as { events: number };
  t.ok(events > 100);
  t.match(await rsptrace('recover', trace, '--plugin', plugin, '--json', '--force').json(), { events });
});

// Below a process usually proves it, and a guest whose trace of records becomes its trace.
for (const [name, ...probes] of usually(recordings, () => false)) {
  t.test(`${name}: out of the records alone come the same events`, async (t) => {
    await comesAgain(t, await recorded(t, name, ...probes));
  });
}

t.test('a position-independent program: out of the records alone come the same events', async (t) => {
  const program = compileReleased(t, 'calls.c', ['-pie', '-fPIE']);
  const found = await recordedFrom(t, [...functionProbes, '--', program, 'threads']);
  t.ok(found.said.records > 1000, `${found.said.records} records`);
  // The records keep the clock of a process by its origin, which is rounded.
  await comesAgain(t, found, (line) => line.replace(/^(call-\w+) \d+ (.*?)(?: \d+)?$/, '$1 $2'));
});

const deterministic = ['rv-o2', 'x86-o2', 'rv-sched'] as const;

for (const name of usually(deterministic, (one) => one === 'rv-o2')) {
  t.test(`${name}: a trace of records becomes the trace of a recording that made its events at once`, async (t) => {
    const folder = scratchFolder(t);
    const [events, records, made] = ['a.jsonl', 'b.records', 'b.jsonl'].map((one) => join(folder, one)) as Paths;
    const probes = name === 'rv-sched' ? ['-p', 'fn:**'] : ['-p', 'poll:**', '-p', 'fn:labkern::work::deep0'];
    const run = (output: string): Promise<Ended> =>
      rsptrace('run', '--json', '--deterministic', '-o', output, ...probes, elfPath(name), '--', ...qemuArgv(name))
        .ended;
    const [direct, raw] = [await run(events), await run(records)];
    t.equal(direct.status, 0, direct.stderr);
    t.equal(raw.status, 0, raw.stderr);
    const { records: count } = JSON.parse(direct.stdout) as { records: number };
    t.match(JSON.parse(raw.stdout), { events: null, records: count, trace_bytes: statSync(records).size });
    t.equal((await rsptrace('convert', records, '-o', made).ended).status, 0);
    t.ok(readFileSync(made).equals(readFileSync(events)), `${statSync(events).size} bytes`);
    t.notOk(existsSync(`${records}.records`));

    // A .pftrace does not say where a probe is.
    const asked = async (...words: string[]) =>
      JSON.parse((await rsptrace(...words, '--json').ended).stdout, (key, value) =>
        key === 'address' ? undefined : (value as unknown),
      ) as object;
    const saved = join(folder, 'c.pftrace');
    await rsptrace('convert', records, '-o', saved).ended;
    const views = [['report', '--by', 'task'], ['tasks', '--at', '1s'], ['report'], ['info']];
    for (const words of usually(views, (one) => one === views[0] || one === views[1])) {
      const [command = '', ...options] = words;
      const [ofRecords, ofTrace] = [await asked(command, records, ...options), await asked(command, saved, ...options)];
      t.same({ ...ofRecords, trace: '' }, { ...ofTrace, trace: '' }, words.join(' '));
    }
  });
}

t.test('what a trace of records cannot be is said before anything is started', async (t) => {
  const records = join(scratchFolder(t), 'a.records');
  const run = async (...options: string[]) =>
    await rsptrace('run', '--json', '-o', records, ...options, elfPath('rv-o2'), '--', ...qemuArgv('rv-o2')).ended;
  for (const options of [
    ['-n', '5'],
    ['--last', '5ms'],
    ['-p', 'count:labkern::work::deep0'],
  ]) {
    const { status, stdout } = await run(...options);
    t.equal(status, 2);
    t.match(JSON.parse(stdout), { error: { code: 'USAGE', message: /keeps records, and makes events of them later/ } });
  }
  t.notOk(existsSync(records));
  writeFileSync(records, 'kept');
  t.match(JSON.parse((await run()).stdout), { error: { code: 'OUTPUT_EXISTS' } });
  t.match(
    (await rsptrace('report', records).ended).stderr,
    /does not begin as a file of records does \[RECORDS_DAMAGED\]/,
  );
  const other = await rsptrace('convert', elfPath('rv-o2'), '-o', `${records}.2.records`).ended;
  t.match(other.stderr, /TRACE_UNKNOWN_FORMAT/);
});

t.test('a trace of records that finds no room ends, and says what is not in it', async (t) => {
  const records = join(scratchFolder(t), 'a.records');
  const words = [
    'run',
    '--json',
    '-o',
    records,
    '-p',
    'poll:**',
    // However late it is read, it gives less at once than the file may have.
    ...['--scratch', '0x87c00000,0x100000'],
    elfPath('rv-o2-long'),
    '--',
    ...qemuArgv('rv-o2-long'),
  ];
  // In blocks of 512 bytes, or of 1024 in some shells.
  const limited = start('sh', ['-c', 'ulimit -f 800; exec "$@"', 'sh', process.execPath, main, ...words]);
  const { status, stdout, stderr } = await limited.ended;
  t.equal(status, 3, stderr);
  t.notMatch(stderr, /PANIC/, 'the guest has the room in its ring that it waits for');
  const said = JSON.parse(stdout) as { records: number; missing: number };
  t.match(said, { end: 'failed', error: { code: 'TRACE_WRITE_FAILED' } });
  const { stdout: dumped } = await rsptrace('dump', records, '--json').ended;
  const { length: kept } = dumped.match(/"kind":"record"/g) ?? [];
  // The write that failed need not have had records in it, and a part of it may be there.
  t.ok(kept > 0);
  t.ok(kept >= said.records - said.missing && kept <= said.records, `${kept} of ${said.records} less ${said.missing}`);
});

const kills = long ? 50 : 1;

t.test(`killed at random moments: ${kills}`, async (t) => {
  const random = randomOf(20_261_123);
  const elf = elfPath('rv-o2-long');
  const untraced = parseLab((await start('qemu-system-riscv64', qemuArgv('rv-o2-long').slice(1)).ended).stdout);
  for (let i = 0; i < kills; i++) {
    const folder = scratchFolder(t);
    const trace = join(folder, 'out.pftrace');
    const probes = ['-p', 'fn:labkern::work::deep*', '-p', 'poll:labkern::work::leaf_io'];
    const words = ['run', '--engine', 'target', '-o', trace, ...probes, elf, '--', ...qemuArgv('rv-o2-long')];
    const running = start(process.execPath, [main, ...words]);
    const records = `${trace}.records`;
    while (!(existsSync(records) && statSync(records).size > 30_000) && !running.over()) await sleep(5);
    await sleep(random(long ? 500 : 100));
    running.process.kill('SIGKILL');
    const { signal } = await running.ended;
    if (signal === null) continue;
    const before = existsSync(trace) ? statSync(trace).size : 0;
    if (before > 1000) {
      const info = await rsptrace('info', trace).ended;
      t.ok(info.stdout.includes(`cut off at byte`), info.stdout);
      t.ok(info.stdout.includes(`\`rsptrace recover ${trace}\` reads the rest`), info.stdout);
    }
    const recovered = await rsptrace('recover', trace, '--json').json<{ records: number; events: number }>();
    t.ok(recovered.events > 0 && recovered.records > 0, `${recovered.events} events of ${recovered.records} records`);
    t.ok(statSync(trace).size >= before, 'the trace has not become shorter');
    const report = JSON.parse((await rsptrace('report', trace, '--by', 'fn', '--json').ended).stdout) as Report;
    const calls = new Map(report.fn.map(({ name, calls }) => [name, calls]));
    const [outermost = 0, innermost = 0] = ['deep7', 'deep0'].map((one) => calls.get(`labkern::work::${one}`) ?? 0);
    const counted = untraced.stats.get('deep_calls')?.calls ?? 0;
    t.ok(outermost <= counted, `${outermost} calls of ${counted}`);
    t.ok(Math.abs(outermost - innermost) <= 1, `${innermost} of its innermost: nothing in between is missing`);
  }
});

interface Report {
  readonly fn: readonly { readonly name: string; readonly calls: number }[];
}

t.test('damaged records are refused, or read as far as they can be', async (t) => {
  const { again } = await recorded(t, 'rv-o2', '-p', 'fn:labkern::**');
  const bytes = readFileSync(`${again}.records`);
  const elf = elfPath('rv-o2');
  const random = randomOf(7);
  const program = await prepare(elf, [parseProbe('fn:labkern::**')]);
  const sink = { begin() {}, event() {}, hart() {}, flush() {}, end() {} };
  let refused = 0;
  const rounds = long ? 3000 : 10;
  for (let i = 0; i < rounds; i++) {
    const damaged = Uint8Array.from(bytes);
    // Most of what is told stands at the begin.
    const reach = i % 2 === 0 ? 6000 : bytes.length;
    for (let n = 0; n <= random(4); n++) damaged[random(Math.min(reach, bytes.length))] = random(256);
    writeFileSync(again, damaged.subarray(0, i % 5 === 0 ? random(bytes.length) : undefined));
    try {
      const killed = new KeptRecords(again);
      try {
        await killed.recover({ program, sink, engine: 'target' });
      } finally {
        killed.close();
      }
    } catch (error) {
      refused++;
      if (!(error instanceof RsptraceError)) throw error;
    }
  }
  t.ok(refused > 0 && refused < rounds, `${refused} of ${rounds} were refused`);
  const older = Uint8Array.from(bytes);
  older[8] = 2;
  writeFileSync(again, older);
  t.throws(() => new KeptRecords(again), {
    code: 'RECORDS_DAMAGED',
    message: /version 2 of its layout.* version 4/,
  });
  writeFileSync(again, bytes);
  const wrong = await rsptrace('recover', join(scratchFolder(t), 'none.pftrace')).ended;
  t.equal(wrong.status, 1);
  t.match(wrong.stderr, /RECORDS_MISSING/);
  const without = await rsptrace('recover', again).ended;
  t.match(without.stderr, /RECORDS_MISMATCH|1 plug-in/);
  t.ok(existsSync(`${again}.records`), 'what cannot be recovered is kept');
});

t.test('records that are cut off do not take the place of a trace that has more', async (t) => {
  const trace = join(scratchFolder(t), 'x.pftrace');
  const ran = await rsptrace('run', '--keep-records', '-o', trace, pollsProgram(t, 'orders'), '--', '4').ended;
  t.equal(ran.status, 0, ran.stderr);
  const whole = readFileSync(trace);
  const records = readFileSync(`${trace}.records`);
  // As a disk that was full leaves them.
  for (const length of [records.length / 2, 2000]) {
    writeFileSync(`${trace}.records`, records.subarray(0, length));
    const { status, stderr } = await rsptrace('recover', trace).ended;
    t.equal(status, 1);
    t.match(stderr, /has more than its records, of which \d+ events? came \[RECORDS_DAMAGED\]/);
    t.strictSame(readFileSync(trace), whole);
    t.strictSame([existsSync(`${trace}.records`), existsSync(`${trace}.recovered`)], [true, false]);
    t.match(await rsptrace('recover', trace, '-o', join(scratchFolder(t), 'y.txt')).ended, { status: 0 });
  }
  writeFileSync(`${trace}.records`, records);
  t.match(await rsptrace('recover', trace).ended, { status: 0 });
});

t.test('of a recording that was killed its stops are known, as far as its records go', async (t) => {
  const trace = join(scratchFolder(t), 'x.pftrace');
  const program = compileC(
    t,
    '__attribute__((noipa)) void f(void) {} int main(void) { for (int i = 0; i < 7; i++) f(); }',
  );
  const words = ['--engine', 'stop', '--keep-records', '-p', 'fn:f', '-o', trace];
  t.match(await rsptrace('run', ...words, program).ended, { status: 0 });
  const records = readFileSync(`${trace}.records`);
  writeFileSync(`${trace}.records`, records.subarray(0, records.indexOf('{"type":"finished"') - 8));
  t.match(await rsptrace('recover', trace).ended, { status: 0 });
  const { stdout } = await rsptrace('info', trace).ended;
  t.match(stdout, 'at least 7 stops of the target, 0 records', 'one each call');
  t.notMatch(stdout, "in the guest's memory", 'nothing was written there');
});

t.test('records of a trace that is overwritten go with it, where the new one has none', async (t) => {
  const trace = join(scratchFolder(t), 'x.json');
  writeFileSync(`${trace}.records`, rawLogMagic);
  const ran = await rsptrace('run', '--engine', 'stop', '-o', trace, pollsProgram(t, 'orders'), '--', '2').ended;
  t.equal(ran.status, 0, ran.stderr);
  t.match(ran.stderr, 'removes the records of an earlier recording');
  t.notOk(existsSync(`${trace}.records`));
});

t.test('another file that lies where records go is kept', async (t) => {
  const trace = join(scratchFolder(t), 'x.json');
  const [beside, program] = [`${trace}.records`, pollsProgram(t, 'orders')];
  writeFileSync(beside, 'notes of my own');
  for (const engine of ['stop', 'target']) {
    const ran = await rsptrace('run', '--engine', engine, '-o', trace, program, '--', '2').ended;
    t.equal(ran.status, 1, ran.stderr);
    t.match(ran.stderr, 'is there already [OUTPUT_EXISTS]');
    t.strictSame([readFileSync(beside, 'utf8'), existsSync(trace)], ['notes of my own', false]);
  }
  const twice = await rsptrace('run', '--record-wire', beside, '--force', '-o', trace, program, '--', '2').ended;
  t.match(twice, { status: 2, stderr: 'OUTPUT_TWICE' });
  t.match(await rsptrace('run', '--force', '-o', trace, program, '--', '2').ended, { status: 0 });
});
