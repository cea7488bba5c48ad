// Files of settings: which one counts, what of it a command line takes, and each mistake by its file and line.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import { parse } from 'smol-toml';
import t, { type Test } from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { commandNames, commandOf, settingsTables } from '../../src/cli/command-line.js';
import { checkSettings, type TomlTable } from '../../src/cli/settings/check.js';
import { settingsFiles } from '../../src/cli/settings/find.js';
import { loadSettings } from '../../src/cli/settings/load.js';
import { settingsSchema } from '../../src/cli/settings/schema.js';
import { filledBy } from '../../src/cli/settings/words.js';
import { elfPath } from '../qemu/guests/guests.js';
import { main, type Ran, scratchFolder } from '../support/command.js';

const root = resolve(import.meta.dirname, '../..');

function within(cwd: string, words: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Omit<Ran, 'signal'>> {
  return new Promise((done) => {
    const all = { cwd, timeout: 100_000, env: { ...process.env, ...env } };
    execFile(process.execPath, [main, ...words], all, (error, stdout, stderr) =>
      done({ stdout, stderr, status: error === null ? 0 : Number(error.code) }),
    );
  });
}

/** What settings add to a line. */
function filled(toml: string, command: string, given: readonly string[], plain: readonly string[], hasCommand = false) {
  const { options, places } = commandOf(command === 'record' ? undefined : command);
  const settings = loadSettings(
    [{ path: resolve('rsptrace.toml'), text: toml, places: [[]] }],
    settingsTables(),
    command,
  );
  const needed = Object.values(places).filter(({ demandOption }) => demandOption).length;
  const line = { command, options, places: Object.keys(places), needed, given, plain, hasCommand };
  return settings ? filledBy(settings, line) : { taken: [], before: [], behind: [] };
}

function added(...given: Parameters<typeof filled>): string[] {
  const { before, behind } = filled(...given);
  return [...before, ...behind];
}

const kernel = 'program = "k.elf"\nremote = ":1"\nrunner = ["qemu-system-riscv64", "-kernel", "{program}"]\n';

t.test('what a command line does not say itself', (t) => {
  t.same(added(kernel, 'record', [], []), ['--remote=:1', 'k.elf']);
  t.same(added(kernel, 'record', ['r'], []), ['k.elf'], 'the line has a stub');
  t.same(added(kernel, 'run', [], []), ['k.elf', '--', 'qemu-system-riscv64', '-kernel', 'k.elf']);
  t.same(added(kernel, 'run', [], ['o.elf']), ['--', 'qemu-system-riscv64', '-kernel', 'o.elf']);
  t.same(added(kernel, 'run', [], [], true), [], 'a command behind --');
  t.same(added('runner = ["qemu", "-kernel", "k.elf"]', 'run', [], ['o.elf']), [], 'a runner of its own program');
  t.same(added(kernel, 'bt', ['p'], []), [], 'a process');
  t.same(added(kernel, 'bt', ['core'], []), ['k.elf'], 'a dump');
  t.same(added(kernel, 'tasks', ['at'], ['x.pftrace']), [], 'a trace');
  t.same(added(kernel, 'types', [], ['Task']), ['k.elf']);
  t.same(added(kernel, 'futures', [], ['net::**']), ['k.elf']);
  t.same(added(kernel, 'futures', [], ['package.json']), [], 'a file');
  t.same(added(kernel, 'report', [], ['x.pftrace']), []);
  t.same(added(kernel, 'graph', [], ['x.pftrace']), []);
  t.same(added(kernel, 'graph', ['fn'], []), ['--remote=:1', 'k.elf']);
  t.same(added(kernel, 'profile', [], ['./app']), ['--', 'qemu-system-riscv64', '-kernel', './app']);
  t.same(added('probe = ["poll:a", "fn:b"]', 'run', [], ['k']), ['--probe=poll:a', '--probe=fn:b']);
  t.same(added('probe = ["poll:a"]', 'run', ['p'], ['k']), []);
  t.same(added('crates = ["net"]', 'run', [], ['k']), ['--probe=poll:net::**']);
  t.same(added('crates = ["net"]\nprobe = ["fn:b"]', 'run', [], ['k']), ['--probe=fn:b']);
  t.same(added('args = false\nexact = true', 'run', [], ['k']), ['--no-args', '--exact']);
  t.same(added('max-events = 5\n[run]\nmax-events = 6', 'run', [], ['k']), ['--max-events=6']);
  t.same(added('scratch = "hidden"', 'run', ['scratch-symbol'], ['k']), []);
  t.same(added('remote = "./gdb"', 'detach', [], ['k']), ['--remote=./gdb']);
  t.same(added('program = "-k.elf"', 'bt', [], []), ['./-k.elf'], 'a file whose name begins as an option does');
  t.same(filled('crates = []\nprobe = []', 'run', [], ['k']), { taken: [], before: [], behind: [] });
  t.end();
});

t.test('what excludes each other: the line counts, then the table of the command', (t) => {
  t.same(added('frequency = 99\n[profile]\nperiod = "1ms"', 'profile', [], ['a']), ['--period=1ms']);
  t.same(added('frequency = 99\n[profile]\nperiod = "1ms"', 'profile', ['frequency'], ['a']), []);
  t.same(added('tree = true\n[futures]\nsize = true', 'futures', [], ['k']), ['--size']);
  t.same(added('tree = true\n[futures]\nsize = false', 'futures', [], ['k']), ['--tree', '--no-size']);
  t.same(added('tree = true\n[futures]\ntree = false', 'futures', [], ['k']), ['--no-tree']);
  const process = `${kernel}[profile]\npid = "7"\n[bt]\npid = "7"\n[graph]\npid = "7"\n`;
  t.same(added(process, 'profile', [], []), ['--pid=7'], 'no program and no runner');
  t.same(added(process, 'profile', [], ['./app']), ['--', 'qemu-system-riscv64', '-kernel', './app']);
  t.same(added(process, 'profile', [], ['./app'], true), []);
  t.same(added(process, 'profile', [], [], true), []);
  t.same(added(process, 'bt', [], []), ['--pid=7']);
  t.same(added(process, 'bt', ['r'], []), ['k.elf'], 'the line has a stub');
  t.same(added(process, 'graph', [], ['x.pftrace']), []);
  t.same(added(process, 'graph', ['fn'], []), ['--pid=7']);
  t.same(added(`${kernel}[graph]\nfn = "a"`, 'graph', [], []), ['--remote=:1', '--fn=a', 'k.elf']);
  t.same(added('[report]\nby = "await"', 'report', ['story'], ['x']), []);
  t.same(added('kernel = true', 'profile', ['U'], ['x']), []);
  t.end();
});

t.test('what is for another use of the command is left out', (t) => {
  const machine = 'elf = ["init"]\nremote = ":1"\n';
  for (const [command, option] of [
    ['bt', 'pid'],
    ['bt', 'core'],
    ['profile', 'p'],
    ['profile', 'off-cpu'],
  ] as const)
    t.same(added(machine, command, [option], ['k']), [], `${command} --${option}`);
  t.same(added(machine, 'attach', [], ['7']), []);
  t.same(added(machine, 'bt', [], ['k']), ['--elf=init', '--remote=:1']);
  t.same(added(`${machine}[bt]\npid = "7"`, 'bt', ['remote'], ['k']), ['--elf=init']);
  const limits = 'max-events = 5\nduration = "1s"\nengine = "stop"\n';
  t.same(added(limits, 'graph', [], ['x.pftrace']), []);
  t.same(added(limits, 'graph', ['fn'], ['k']), ['--max-events=5', '--duration=1s', '--engine=stop']);
  t.same(added('duration = "1s"', 'profile', ['off-cpu'], ['x']), []);
  t.same(added('top = 20', 'tasks', ['pid'], []), []);
  t.same(added('top = 20', 'tasks', ['at'], ['x']), ['--top=20']);
  t.same(added('top = 20', 'graph', ['fn'], ['k']), []);
  t.same(added('filter = "a"', 'profile', [], ['k']), []);
  t.same(added('filter = "a"', 'profile', ['off-cpu'], ['k']), ['--filter=a']);
  t.end();
});

const mistakes: readonly (readonly [toml: string, line: number, sentence: RegExp, hint?: string])[] = [
  ['[report]\nbye = 1', 2, /there is no option 'bye' of report/, 'nearest: by'],
  ['\nremot = ":1"', 2, /there is no option 'remot'/, 'nearest: remote'],
  ['[reprot]\nby = "fn"', 1, /there is no command 'reprot'/, 'nearest: report'],
  ['config = false', 1, /there is no option 'config'/],
  ['json = 1', 1, /json is true or false/],
  ['probe = "poll:x"', 1, /probe is a list of texts: \["poll:x"\]/],
  ['remote = 1234', 1, /remote is a text/],
  ['[run]\n"max-events" = -1', 2, /--max-events takes a whole number above 0, not '-1'/],
  ['engine = "fast"', 1, /engine is one of auto, mixed, target, stop/],
  ['sort = "delta"', 1, /sort is one of total/],
  ['x = """\nremote = 1\n"""\nremote = 1', 1, /there is no option 'x'/],
  ['program = "p"\nlast = """\nremote\n"""\nremote = 1', 2, /--last takes a length of time/],
  ['a = ', 1, /TOML/],
  ['constructor = "x"', 1, /there is no option 'constructor'/],
  ['[toString]\nx = 1', 1, /there is no command 'toString'/],
  ['[run]\nvalueOf = "x"', 2, /there is no option 'valueOf' of run/],
  ['run.remote = ":1"', 1, /there is no option 'remote' of run/],
];

t.test('mistakes, each with file and line', (t) => {
  for (const [text, line, sentence, hint] of mistakes) {
    let thrown: unknown;
    try {
      loadSettings([{ path: '/p/rsptrace.toml', text, places: [[]] }], settingsTables(), 'run');
    } catch (error) {
      thrown = error;
    }
    if (!(thrown instanceof RsptraceError)) throw thrown ?? new Error(text);
    t.equal(thrown.code, 'SETTINGS_INVALID');
    t.match(thrown.message, sentence, text);
    t.match(thrown.message, new RegExp(`rsptrace.toml:${line}: `), text);
    if (hint) t.equal(thrown.hint?.slice(0, hint.length), hint);
  }
  t.end();
});

t.test('which file counts', (t) => {
  const folder = scratchFolder(t);
  const inner = join(folder, 'crates/kernel/src');
  mkdirSync(inner, { recursive: true });
  writeFileSync(join(folder, 'rsptrace.toml'), 'remote = ":1"');
  writeFileSync(join(folder, 'crates/Cargo.toml'), '[workspace.metadata.rsptrace]\nremote = ":2"\n[workspace]\n');
  writeFileSync(join(folder, 'crates/kernel/Cargo.toml'), '[package]\nname = "rsptrace"\nmetadata = {}\n');
  const load = (): unknown =>
    loadSettings(
      settingsFiles(inner, () => {}),
      settingsTables(),
      'bt',
    )?.values;
  t.same(load(), { remote: ':2' }, 'a Cargo.toml without a table is no file of settings');
  writeFileSync(join(folder, 'crates/kernel/Cargo.toml'), '[package.metadata.rsptrace.bt]\nremote = ":3"\n');
  t.same(load(), { remote: ':3' });
  writeFileSync(join(folder, 'crates/kernel/rsptrace.toml'), '');
  t.same(load(), {}, 'the nearest');
  t.end();
});

/** A folder with settings, and one below it in which commands run. */
function userFolder(t: Test): { readonly file: string; readonly sub: string } {
  const folder = scratchFolder(t);
  const [file, sub] = [join(folder, 'rsptrace.toml'), join(folder, 'sub')];
  mkdirSync(sub);
  symlinkSync(elfPath('rv-o2'), join(folder, 'kernel.elf'));
  writeFileSync(file, 'program = "kernel.elf"\ncrates = ["nowhere"]\nlog = "error"\n[bt]\nremote = "./nobody"\n');
  return { file, sub };
}

t.test('as a user runs it', async (t) => {
  const { file, sub } = userFolder(t);
  t.match(await within(sub, ['bt']), { status: 1, stderr: /: log, remote, program\n.*\.\.\/nobody/ });
  writeFileSync(file, 'programm = "kernel.elf"\n');
  const wrong = await within(sub, ['tasks', '--json', '--pid', '1']);
  t.match(wrong, { status: 2, stderr: /^rsptrace: \.\.\/rsptrace\.toml:1: .*'programm' \[SETTINGS_INVALID\]/ });
  t.match(JSON.parse(wrong.stdout), { error: { code: 'SETTINGS_INVALID', hint: 'nearest: program' } });
});

t.test('what else can be said: an option, the environment, another command', async (t) => {
  const { sub } = userFolder(t);
  const futures = await within(sub, ['futures', 'level3']);
  t.match(futures, { status: 0, stderr: 'rsptrace: settings of ../rsptrace.toml: program\n' });
  t.match(futures.stdout, /labkern::work::level3/);
  const without = await within(sub, ['futures', '--no-config', 'level3']);
  t.match(without, { status: 1, stderr: /level3/ });
  const completed = await within(sub, ['completion', 'probes', 'poll:lev', '--', 'rsptrace', 'run']);
  t.equal(completed.stdout, 'poll:level1\npoll:level2\npoll:level3\n');
  const logged = await within(sub, ['bt'], { RSPTRACE_LOG: 'error' });
  t.match(logged.stderr, /: remote, program\n/, 'the environment has it');
  t.match(await within(sub, ['run', '--dry-run']), { status: 1, stderr: /no Future matches 'poll:nowhere::\*\*'/ });
});

t.test('the schema says what the command line says', (t) => {
  const schema = JSON.parse(readFileSync(join(root, 'dist/settings.schema.json'), 'utf8')) as TomlTable;
  t.same(schema, settingsSchema(), 'which the build has written');
  const valid = new Ajv2020.default({ allowUnionTypes: true }).compile(schema);
  const isRight = (table: TomlTable): boolean => {
    try {
      checkSettings(table, settingsTables(), (_, sentence) => new RsptraceError('SETTINGS_INVALID', sentence));
      return true;
    } catch {
      return false;
    }
  };
  // What a text has to be like is not in the schema.
  const tables = mistakes
    .filter(([text]) => !/-1|last/.test(text))
    .flatMap(([text]) => (text === 'a = ' ? [] : parse(text)));
  for (const table of tables) t.equal(valid(table), false, JSON.stringify(table));
  for (const name of ['record', ...commandNames]) {
    const { options } = commandOf(name === 'record' ? undefined : name);
    for (const [key, { type, array, choices }] of Object.entries(options)) {
      const right = type === 'boolean' ? true : array ? [] : (choices?.[0] ?? undefined);
      for (const value of [true, ['x'], 'y', {}, ...(right === undefined ? [] : [right])]) {
        if (value === 'y' || (array && value !== right)) continue;
        t.equal(valid({ [name]: { [key]: value } }), isRight({ [name]: { [key]: value } }), `${name} ${key} ${value}`);
      }
    }
  }
  t.end();
});
