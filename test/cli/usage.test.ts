// Command lines that cannot be understood: one sentence with a code, a way out, status 2; and nothing is touched.
import { join } from 'node:path';
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { runCommandLine } from '../../src/cli/command-line.js';
import { elfPath } from '../qemu/guests/guests.js';
import { rsptrace, rsptraceProcess, scratchFolder } from '../support/command.js';

const elf = elfPath('rv-o2');
const stub = ['--remote', ':1'];

const cases: [words: string[], sentence: string, nearest?: string][] = [
  [[], 'what is to be done?'],
  [['taks', '--pid', '1'], "there is neither a command nor a file 'taks'", 'tasks'],
  [['run', 'qemu-system-riscv64', '-M', 'virt'], 'there is no option -M'],
  [['run'], 'an argument is missing: the ELF of the kernel or program'],
  [['types'], 'an argument is missing: the ELF of the kernel or program and the type'],
  [['types', elf], 'an argument is missing: the type'],
  [['recover'], 'an argument is missing: the trace'],
  [['diff', elf], 'an argument is missing: the other trace'],
  [['merge', elf], 'an argument is missing: another trace'],
  [['attach'], 'an argument is missing: the number of the process'],
  [['--foo'], 'there is no option --foo'],
  [['--remote'], 'a value is missing behind --remote'],
  [['-r'], 'a value is missing behind -r'],
  [['--ouput', elf], 'there is no option --ouput', '--output'],
  [['run', '--max', elf], 'there is no option --max', '--max-depth, --max-events'],
  [['bt', '--unwidner', 'cfi', ...stub, elf], 'there is no option --unwidner', '--unwinder'],
  [['convert', 'x.pftrace', '--no-output'], 'there is no option --no-output', '--output'],
  [['report', 'x.pftrace', '--no-top'], 'there is no option --no-top'],
  [['futures', '--remote', ':1', elf], 'there is no option --remote'],
  [['runn', elf, '--', 'qemu-system-riscv64'], "there is neither a command nor a file 'runn'", 'run'],
  [[...stub, 'tsaks', elf], "there is neither a command nor a file 'tsaks'", 'tasks'],
  [['record'], "there is neither a command nor a file 'record'"],
  [['nofile.elf'], "there is neither a command nor a file 'nofile.elf'"],
  [['recrod'], "there is neither a command nor a file 'recrod'"],
  [[...stub, elf, '--json=abc'], "--json takes no value, such as 'abc'"],
  [[...stub, elf, '--dry-run=1'], "--dry-run takes no value, such as '1'"],
  [['bt', elf], 'where is the stub? --remote is missing'],
  [['bt', '1234'], 'where is the stub? --remote is missing'],
  [['top', '1234'], 'give one of --pid and --remote'],
  [['tasks', '--at', '1s', '--blocked', 'x.pftrace'], '--blocked is not for a saved trace, and --at is for one'],
  [
    ['tasks', '--at', '1s', '--findings=error', 'x.pftrace'],
    '--findings error is not for a saved trace, and --at is for one',
  ],
  [['tasks', '1234'], 'give one of --remote, --pid and --core, or --at TIME for a saved trace'],
  [['doctor'], 'where is the stub? --remote is missing'],
  [['convert', 'x.pftrace'], 'where is it to be written? -o is missing'],
  [[elf, '--remote'], 'a value is missing behind --remote'],
  [['-r', '--hw', elf], 'a value is missing behind -r'],
  [[...stub, elf, '-p'], 'a value is missing behind -p'],
  [[...stub, elf, '--engine'], 'a value is missing behind --engine'],
  [[...stub, elf, '--clock', '--hw'], 'a value is missing behind --clock'],
  [['bt', ...stub, elf, '-u'], 'a value is missing behind -u'],
  [[...stub, elf, '--nonsense'], 'there is no option --nonsense'],
  [[...stub, elf, '--no-such', '--size=3'], 'there is no option --no-such or --size'],
  [[...stub, elf, '--log-file', 'x'], 'there is no option --log-file'],
  [['tasks', ...stub, elf, '-xy'], 'there is no option -x or -y'],
  [['run', ...stub, elf], 'there is no option --remote'],
  [['run', elf, 'more'], "too many arguments: 'more'"],
  [[...stub, elf, 'more', '2'], "too many arguments: 'more', '2'"],
  [[...stub, elf, 'more', '--odd'], 'there is no option --odd'],
  [[...stub, elf, '--engine', 'x'], "--engine is one of auto, mixed, target, stop, not 'x'"],
  [
    ['tasks', ...stub, elf, '--findings', 'a', '--sort', 'b'],
    "--findings is one of show, error, not 'a'; --sort is one of waiting, polls, name, not 'b'",
  ],
  [['bt', ...stub, elf, '--log', 'a'], "--log is one of silent, error, warn, info, debug, trace, not 'a'"],
  [
    [...stub, elf, '--scratch', '0x87000000,1M', '--scratch-symbol', 'X'],
    '--scratch and --scratch-symbol do not go together',
  ],
  [[...stub, elf, '-d', 'abc'], "'abc' is not a length of time: write 10, 10s, 500ms or 2m, at most 24 days"],
  [[...stub, elf, '-n', '0'], "--max-events takes a whole number above 0, not '0'"],
];

const hints =
  /^(?:debug:inject,clock |rsptrace tasks --pid 1234 |QEMU's command goes behind --: rsptrace run -- qemu-system-riscv64 -M virt$|try 'rsptrace (?:\w+ )?--help'|a program's own arguments go behind --|to record, give |give --remote :1234|give -o FILE|write --[a-z-]+ alone)/;

t.test('what is behind a program is shown where it belongs', async (t) => {
  const error = await runCommandLine(['run', elf, '5', 'six']).catch((thrown: unknown) => thrown);
  t.match(error instanceof RsptraceError && error.hint, /rsptrace run .\/program -- 5 six; /);
});

t.test('each in one sentence', async (t) => {
  for (const [words, sentence, nearest] of cases) {
    const error = await runCommandLine(words).catch((thrown: unknown) => thrown);
    if (!(error instanceof RsptraceError)) throw error;
    t.equal(error.code, 'USAGE', words.join(' '));
    t.equal(error.message, sentence);
    if (nearest === undefined)
      t.match(error.hint, words[1] === '1234' ? /^a process of this machine is --pid 1234$/ : hints);
    else t.equal(error.hint, `nearest: ${nearest}`);
  }
});

t.test('with status 2, on stderr', async (t) => {
  const { status, stdout, stderr } = await rsptrace('runn', elf).ended;
  t.same([status, stdout], [2, '']);
  t.equal(stderr, "rsptrace: there is neither a command nor a file 'runn' [USAGE]\n  nearest: run\n");
});

t.test('a module is spelt wrongly: the nearest modules', async (t) => {
  for (const [glob, near] of [
    ['labkern::wrk::*', 'labkern::work::*'],
    ['wrk::**', 'work::*'],
  ]) {
    const error = await runCommandLine([...stub, '--dry-run', '-p', `poll:${glob}`, elf]).catch(
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof RsptraceError)) throw error;
    t.equal(error.code, 'PROBE_NO_MATCH');
    t.equal(error.hint?.split(', ')[0], `nearest: ${near}`);
  }
});

t.test('JSON that is asked of a program is not asked of rsptrace', async (t) => {
  for (const words of [
    ['./none', '--', '--json'],
    ['--json=false', './none'],
  ])
    t.match(await rsptraceProcess('run', ...words).ended, { status: 1, stdout: '', stderr: /ELF_UNREADABLE/ });
});

t.test('and as JSON', async (t) => {
  t.same(await rsptrace(...stub, elf, '--json', '--ouput', 'x').json(2), {
    version: 1,
    error: { code: 'USAGE', message: 'there is no option --ouput', hint: 'nearest: --output' },
  });
});

t.test('of an option that is given twice the last one holds, also where it is one of a few words', async (t) => {
  const trace = join(scratchFolder(t), 'out.pftrace');
  const words = ['--engine', 'target', '--engine', 'stop', '--log', 'debug', '--log', 'silent'];
  const { status, stdout, stderr } = await rsptrace(...stub, ...words, '--dry-run', '--json', '-o', trace, elf).ended;
  t.same([status, stderr], [0, '']);
  const { probes } = JSON.parse(stdout) as { probes: { engine: string }[] };
  // What is left out is there for more than the polls that were asked for.
  t.same([...new Set(probes.map(({ engine }) => engine).filter((engine) => engine !== 'none'))], ['stop']);
});
