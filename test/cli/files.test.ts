// No output destroys what is read, nor another output: all pairs, under every name that a file can have. And what is there
// already is kept, unless --force is given.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { runCommandLine } from '../../src/cli/command-line.js';
import { WireRecorder } from '../../src/rsp/index.js';
import { openTrace } from '../../src/trace/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { main, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import { info } from '../trace/stories.js';

const folder = scratchFolder(t);
const at = (name: string): string => join(folder, name);
const elf = at('k.elf');
copyFileSync(elfPath('rv-o2'), elf);
const content = readFileSync(elf);
// What a trace may be called: the extension chooses the format.
const named = at('named.json');
symlinkSync(elf, named);
const wire = at('wire');
writeFileSync(wire, '{"rsptrace_wire":1}\n');

async function codeOf(...words: string[]): Promise<string> {
  try {
    return `status ${await runCommandLine(words)}`;
  } catch (error) {
    if (!(error instanceof RsptraceError)) throw error;
    return `${error.code}: ${error.message}`;
  }
}

/** Commands, with what each reads: `IN` is the file that an output names too. */
const inputs: Record<string, string[][]> = {
  record: [
    ['--remote', ':1', 'IN'],
    ['--remote', 'replay:IN', elf],
    ['--remote', 'unix:IN', elf],
    ['--remote', ':1', '--debug-file', 'IN', elf],
  ],
  run: [
    ['run', 'IN', '--', 'qemu'],
    ['run', '--debug-file', 'IN', elf, '--', 'qemu'],
    ['run', elf, '--', 'qemu', '-kernel', 'IN'],
    ['run', elf, '--', 'qemu', '-drive', 'if=none,file=IN,format=raw'],
    ['run', elf, '--', 'qemu', '-serial', 'file:IN'],
  ],
  bt: [
    ['bt', '--remote', ':1', 'IN'],
    ['bt', '--remote', 'replay:IN', elf],
    ['bt', '--remote', ':1', '--debug-file', 'IN', elf],
  ],
  tasks: [
    ['tasks', '--remote', ':1', 'IN'],
    ['tasks', '--core', 'IN', elf],
  ],
  doctor: [['doctor', '--remote', ':1', 'IN']],
  detach: [['detach', '--remote', ':1', 'IN']],
  futures: [
    ['futures', 'IN'],
    ['futures', '--debug-file', 'IN', elf],
  ],
};
const outputs: Record<string, string[]> = {
  record: ['-o', '--record-wire'],
  run: ['-o', '--record-wire', '--console'],
  bt: ['--record-wire'],
  tasks: ['--record-wire'],
  doctor: ['--record-wire'],
  detach: ['--record-wire'],
  futures: ['--svg'],
};

t.test('an output that is an input is refused, whatever it is called', async (t) => {
  linkSync(elf, at('hard.json'));
  symlinkSync('named.json', at('twice.json'));
  const fd = openSync(elf, 'r');
  t.teardown(() => closeSync(fd));
  const names = [elf, relative('.', elf), at('../x').replace('/x', `/${relative(at('..'), elf)}`), `/dev/fd/${fd}`];
  const traces = [named, at('hard.json'), at('twice.json')];
  for (const [command, lines] of Object.entries(inputs)) {
    for (const line of lines) {
      for (const option of outputs[command] as string[]) {
        const all = option === '-o' ? traces : [...names, ...traces];
        for (const name of usually(all, (one) => line === lines[0] || one === named)) {
          const words = line.map((word) => word.replace('IN', elf));
          words.splice(words.indexOf('--') < 0 ? words.length : words.indexOf('--'), 0, `${option}=${name}`);
          t.match(await codeOf(...words), /^OUTPUT_IS_INPUT: .* would destroy it$/, words.join(' '));
        }
      }
    }
  }
  t.ok(readFileSync(elf).equals(content));
});

t.test('two outputs that are one file are refused, also where it is not there yet', async (t) => {
  writeFileSync(at('there.txt'), '');
  symlinkSync('there.txt', at('link'));
  symlinkSync('not-yet.txt', at('dangling'));
  const same: [one: string, other: string][] = [
    [at('there.txt'), at('there.txt')],
    [at('there.txt'), at('link')],
    [at('new.txt'), at('./new.txt')],
    [at('new.txt'), relative('.', at('new.txt'))],
    [at('not-yet.txt'), at('dangling')],
  ];
  for (const [one, other] of same) {
    for (const [first, second] of [
      ['-o', '--record-wire'],
      ['-o', '--console'],
      ['--record-wire', '--console'],
    ]) {
      const words = ['run', `${first}=${one}`, `${second}=${other}`, elf, '--', 'qemu'];
      t.match(await codeOf(...words), /^OUTPUT_TWICE: .* each would overwrite the other$/, words.join(' '));
    }
  }
  t.match(await codeOf('--remote=:1', '--record-wire=rsptrace.pftrace.old', elf), /^OUTPUT_TWICE/);
  t.match(await codeOf('--remote=replay:rsptrace.pftrace.old', elf), /^OUTPUT_IS_INPUT/);
  t.notOk(existsSync(at('new.txt')) || existsSync(at('not-yet.txt')));
  t.match(
    await codeOf('run', '--console=/dev/null', '--record-wire=/dev/null', elf),
    /^RUN_NO_COMMAND/,
    'devices lose nothing',
  );
});

t.test('what is there is kept, whatever it is and whichever option names it, unless --force is given', async (t) => {
  const notes = at('notes.txt');
  const run = ['run', '-o', at('unused.txt'), '--duration', '1ms'];
  const commands: string[][] = [
    ['--remote', `replay:${wire}`, '-o', notes, elf],
    ['--remote', ':1', '-o', at('unused.txt'), '--record-wire', notes, elf],
    ['bt', '--remote', ':1', '--record-wire', notes, elf],
    [...run, '--console', notes, elf, '--', 'no-such-qemu'],
    [...run, '--junit', notes, elf, '--', 'no-such-qemu'],
    ['check', '--budget', at('no.json'), '--markdown', notes, at('no.pftrace')],
    ['futures', `--svg=${notes}`, elf, 'level3'],
  ];
  const there = ['\n\x03abc\nand some lines\n', '{"rsptrace_wire":1}\n', '<?xml version="1.0"?>\n<svg/>', 'boot ok\n'];
  for (const words of commands) {
    for (const text of words === commands[0] ? there : there.slice(0, 1)) {
      writeFileSync(notes, text);
      t.equal(await codeOf(...words), `OUTPUT_EXISTS: ${notes} is there already`, words.join(' '));
      t.equal(readFileSync(notes, 'utf8'), text);
    }
    const behind = words.indexOf('--');
    const forced = words.toSpliced(behind < 0 ? words.length : behind, 0, '--force');
    t.notMatch(await codeOf(...forced), /^OUTPUT_/, forced.join(' '));
  }
  t.match(readFileSync(notes, 'utf8'), /^<\?xml/, 'that of the last command');
  writeFileSync(at('empty.svg'), '');
  t.equal(await codeOf('futures', `--svg=${at('empty.svg')}`, elf, 'level3'), 'status 0', 'nothing is lost of it');
});

t.test('the library overwrites nothing either, unless it is told to', (t) => {
  const older = at('older.txt');
  writeFileSync(older, 'boot ok\n');
  for (const open of [() => openTrace(older), () => new WireRecorder(older)]) t.throws(open, { code: 'OUTPUT_EXISTS' });
  t.equal(readFileSync(older, 'utf8'), 'boot ok\n');
  const forced = openTrace(older, { force: true });
  forced.begin(info);
  forced.end();
  t.match(readFileSync(older, 'utf8'), /^# /);
  t.end();
});

t.test('a file that another rsptrace writes is refused, until that one has ended', async (t) => {
  const trace = at('locked.pftrace');
  // flock(1) is the other one: the same lock as ours, and none of our code.
  const other = spawn('flock', [trace, 'sh', '-c', 'echo; read line'], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(other.stdout, 'data');
  for (const [option, ...rest] of [
    ['-o', '--remote', ':1'],
    ['--record-wire', '-o', at('x.txt'), '--remote', ':1'],
    ['--console', 'run', '-o', at('x.txt')],
  ]) {
    const words = [
      ...rest,
      `${option}=${trace}`,
      elf,
      ...(option === '--console' ? ['--', 'qemu-system-riscv64'] : []),
    ];
    t.match(await codeOf(...words), /^OUTPUT_IN_USE: .* is being written by another rsptrace$/, String(option));
  }
  other.stdin.end();
  await once(other, 'close');
  t.match(await codeOf('--remote', ':1', '-o', trace, elf), /^RSP_CONNECT/);

  const first = openTrace(trace, { lock: (why) => t.fail(why) });
  t.throws(() => openTrace(trace, { lock: () => {} }), { code: 'OUTPUT_IN_USE' });
  t.equal(spawnSync('flock', ['-n', trace, 'true']).status, 1);
  first.end();
  const told: string[] = [];
  const { PATH } = process.env;
  process.env.PATH = folder;
  openTrace(at('unlocked.txt'), { lock: (why) => told.push(why) }).end();
  process.env.PATH = PATH;
  t.match(told, [/a second rsptrace could write .*unlocked\.txt too/]);
});

t.test('the trace before the default one is kept, and only when a new one has begun', async (t) => {
  const trace = at('rsptrace.pftrace');
  const options = { keepAs: '.old', lock: () => {} };
  const record = (program: string): void => {
    const sink = openTrace(trace, options);
    sink.begin({ ...info, program });
    sink.end();
  };
  record('first');
  t.notOk(existsSync(`${trace}.old`));
  const first = readFileSync(trace);
  openTrace(trace, options).end();
  t.same([existsSync(`${trace}.old`), readFileSync(trace).equals(first)], [false, true], 'nothing was recorded');
  record('second');
  t.ok(readFileSync(`${trace}.old`).equals(first));
  const second = readFileSync(trace);
  t.match(second.toString('latin1'), 'second');
  // Taken away between the opening and the first event; and reached through a link.
  const sink = openTrace(trace, options);
  renameSync(trace, at('elsewhere'));
  sink.begin(info);
  sink.end();
  t.ok(existsSync(trace) && readFileSync(at('elsewhere')).equals(second));
  symlinkSync(trace, at('link.pftrace'));
  const linked = openTrace(at('link.pftrace'), options);
  const third = readFileSync(trace);
  linked.begin(info);
  t.equal(spawnSync('flock', ['-n', trace, 'true']).status, 1, 'the new file is locked as the old one was');
  linked.end();
  t.ok(readFileSync(`${trace}.old`).equals(third));
});

t.test('standard streams count as outputs, and a full disk is one sentence', async (t) => {
  const run = (shell: string): { status: number | null; stderr: string } => {
    const { status, stderr } = spawnSync('sh', ['-c', `"$0" "$1" ${shell}`, process.execPath, main], {
      encoding: 'utf8',
    });
    return { status, stderr };
  };
  t.match(run(`futures ${elf} >> ${elf}`), {
    status: 2,
    stderr: /standard output is also the ELF .* \[OUTPUT_IS_INPUT\]/,
  });
  const out = at('out.txt');
  t.match(run(`--remote :1 -o ${out} ${elf} > ${out}`), {
    status: 2,
    stderr: /is also standard output.*\[OUTPUT_TWICE\]/,
  });
  t.ok(readFileSync(elf).equals(content));
  const full = /^rsptrace: standard output cannot be written: ENOSPC[^\n]* \[OUTPUT_CANNOT_WRITE\]\n {2}[^\n]*\n$/;
  t.match(run(`futures ${elf} > /dev/full`), { status: 1, stderr: full });
  t.match(run(`--remote :1 --dry-run --json ${elf} > /dev/full`), { status: 3, stderr: full });
  t.match(run(`types ${elf} nonsense 2> /dev/full`), { status: 1 });
});
