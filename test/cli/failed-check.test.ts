// CI servers read reports and nothing else: an error of rsptrace is in them, whenever it comes.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type Checked, checkedMarkdown, githubAnnotations, junitXml } from '../../src/check/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { compileC } from '../support/native.js';

const folder = scratchFolder(t);
const [report, page] = [join(folder, 'junit.xml'), join(folder, 'page.md')];
const reports = ['--junit', report, '--markdown', page, '--github', '--force'];

/** The cases of a JUnit file that are errors, as Python's parser reads it: type and message. */
function errorsIn(path: string): [type: string, message: string][] {
  const read =
    'import sys, json, xml.etree.ElementTree as e; print(json.dumps([[f.get("type"), f.get("message")] for f in e.parse(sys.argv[1]).iter("error")]))';
  return JSON.parse(execFileSync('python3', ['-c', read, path], { encoding: 'utf8' }));
}

t.test('a command that fails before it begins writes its reports', async (t) => {
  const elf = elfPath('rv-o2');
  const out = ['-o', join(folder, 'never.pftrace')];
  const missing = join(folder, 'missing.pftrace');
  const budget = join(folder, 'budget.json');
  writeFileSync(budget, '{"never": ["reset"]}');
  const failing = {
    PROBE_NO_MATCH: ['run', '-p', 'poll:nothing', ...out, elf, '--', 'qemu-system-riscv64'],
    BUDGET_UNREADABLE: ['run', '--budget', missing, ...out, elf, '--', 'qemu-system-riscv64'],
    RUN_NOT_FOUND: ['run', ...out, elf, '--', './no/qemu-system-riscv64', '-kernel', elf],
    TRACE_UNREADABLE: ['check', missing, '--budget', budget],
  };
  for (const [code, [verb = '', ...words]] of Object.entries(failing)) {
    writeFileSync(report, 'of the run before');
    const ran = await rsptrace(verb, ...reports, ...words).ended;
    t.match(ran, { status: 1, stderr: `[${code}]` });
    t.match(errorsIn(report), [[code, /./]], code);
    t.match(readFileSync(page, 'utf8'), `[\`${code}\`\\]`);
    t.match(ran.stdout, new RegExp(`^::error title=rsptrace ${code}::`, 'm'));
  }
  t.match(await rsptrace('check', missing, '--budget', budget, '--junit', report, '--json').ended, { status: 1 });
});

t.test('what is no place for a report is left alone', async (t) => {
  const budget = join(folder, 'kept.json');
  writeFileSync(budget, '{"never": ["reset"]}');
  const before = readFileSync(budget, 'utf8');
  const missing = join(folder, 'missing.pftrace');
  await rsptrace('check', missing, '--budget', budget, '--junit', budget, '--force').ended;
  t.equal(readFileSync(budget, 'utf8'), before, 'an input');
  writeFileSync(report, 'of the run before');
  const ran = await rsptrace('check', missing, '--budget', budget, '--junit', report, '--markdown', page).ended;
  t.match(ran, { status: 1, stderr: /OUTPUT_EXISTS/ });
  t.equal(readFileSync(report, 'utf8'), 'of the run before', 'an older report, without --force');
  const dry = join(folder, 'dry.xml');
  const run = ['run', '--dry-run', '-p', 'poll:nothing', elfPath('rv-o2'), '--junit', dry, '--', 'qemu-system-riscv64'];
  t.match(await rsptrace(...run).ended, { status: 1 });
  t.notOk(existsSync(dry), 'nothing is written for --dry-run');
});

t.test(
  'a recording whose report cannot be written is one whose end was cut off, and says all that it knows',
  async (t) => {
    const nowhere = join(folder, 'no/junit.xml');
    const trace = join(folder, 'reported.pftrace');
    const words = ['--junit', nowhere, '-o', trace, '--force', '--engine', 'stop', '-p', 'fn:main'];
    const program = compileC(t, 'int main(int count, char **words) { return count - 1; }');
    const ran = await rsptrace('run', ...words, '-d', '20s', program, '--', 'one').ended;
    t.match(ran, { status: 3, stderr: `${nowhere}: ENOENT` });
    t.match(await rsptrace('info', trace, '--json').json(), { by_type: { 'call-begin': 1 } });
    const both = await rsptrace('run', ...words, '--guest-status', program, '--', 'one', 'two').ended;
    t.match(both, { status: 3, stdout: 'status 2' });
  },
);

t.test('what was checked until an error stands beside it', async (t) => {
  const verdict = { section: 'reach', subject: 'fn:init', state: 'kept', limit: 'at least 1', measured: '2' } as const;
  const error = { code: 'RSP_TIMEOUT', message: 'no answer to "g" | <5 s>', hint: '100 % sure: wait' };
  const checked: Checked = { program: 'k', trace: 't', budget: 'b', verdicts: [verdict], isStrict: false, error };
  writeFileSync(report, junitXml(checked));
  t.strictSame(errorsIn(report), [['RSP_TIMEOUT', 'no answer to "g" | <5 s>; 100 % sure: wait']]);
  t.match(readFileSync(report, 'utf8'), 'tests="2" failures="0" errors="1" skipped="0"');
  t.equal(
    githubAnnotations(checked, '/'),
    '::error title=rsptrace RSP_TIMEOUT::no answer to "g" | <5 s>; 100 %25 sure: wait\n',
  );
  t.match(
    checkedMarkdown(checked),
    /: 1 kept, 0 broken\n\n\*\*rsptrace failed\*\*: no answer to "g" \\\| \\<5 s\\>; 100/,
  );
});

t.test('no report holds a character that nobody sees or that a terminal obeys', async (t) => {
  const name = 'a\u202eb\u001b[31m\u0007\u2066';
  const verdict = { section: 'times', subject: name, state: 'broken', limit: name, measured: name } as const;
  const place = { file: `/src/${name}.rs`, line: 3 };
  const error = { code: 'X', message: name, hint: name };
  const verdicts = [{ ...verdict, place }];
  const checked: Checked = { trace: name, program: name, budget: name, verdicts, isStrict: true, error };
  for (const made of [junitXml(checked), checkedMarkdown(checked), githubAnnotations(checked, '/src')]) {
    t.notMatch(made.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u);
    t.match(made, /\{202e\\?\}/);
  }
});
