// Arguments of functions as the registers at their entries tell them, against what gdb prints at the same calls.
// Either architecture once; optimised and not, each, under `scripts/test --long`.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { gdbArguments } from '../support/gdb-arguments.js';
import { long, usually } from '../support/long.js';
import { elfPath, qemuArgv } from './guests/guests.js';

/** `0x80200000` -> the first of the function's names in the symbol table. */
function symbolNames(elf: string): Map<string, string> {
  const out = execFileSync('readelf', ['-sW', elf], { encoding: 'utf8' });
  const found = new Map<string, string>();
  for (const [, value = '', name = ''] of out.matchAll(/^ *\d+: ([0-9a-f]+) +\d+ FUNC +\w+ +\w+ +\d+ (\S+)/gm)) {
    found.set(`0x${BigInt(`0x${value}`).toString(16)}`, name);
  }
  return found;
}

/** The numbers in a value as it is printed, those of pointers included. */
function numbersIn(text: string): string[] {
  return [...text.matchAll(/(?<!\w)-?(?:0x[0-9a-f]+|\d+)(?!\w)|\b(?:true|false)\b/g)].map(([found]) =>
    found === 'true' ? '1' : found === 'false' ? '0' : BigInt(found).toString(),
  );
}

/** `a: 1, b: P { x: 1, y: 2 }` by name. */
function valuesIn(text: string): Map<string, string> {
  const values = new Map<string, string>();
  let [from, depth, quoted] = [0, 0, false];
  for (let at = 0; at <= text.length; at++) {
    const c = text[at] ?? ',';
    if (c === '"' && text[at - 1] !== '\\') quoted = !quoted;
    if (quoted) continue;
    if ('([{'.includes(c)) depth++;
    if (')]}'.includes(c)) depth--;
    if (c !== ',' || depth > 0) continue;
    const [, name = '', value = ''] = /^ ?(\w+): (.*)$/s.exec(text.slice(from, at)) ?? [];
    values.set(name, value);
    from = at + 1;
  }
  return values;
}

/** A text, a reference that was followed, or a struct that was passed in memory. */
function isFromMemory(text: string): boolean {
  return /^["&]|\b(?:Box|Vec|Arc|Rc)\(|[{([].*["&]|\{ .*, .*, .*\}|^\w*\[/.test(text);
}

const guests = [
  { name: 'rv-o0', exact: false, until: 'labkern::arch::timer_init' },
  { name: 'rv-o2', exact: true, until: 'labkern::exec::run' },
  { name: 'x86-o0', exact: false, until: 'labkern::arch::timer_init' },
  { name: 'x86-o2', exact: true, until: 'labkern::exec::run' },
];
for (const { name, exact, until } of usually(guests, ({ name }) => name === 'x86-o2')) {
  t.test(`${name}: arguments are those that gdb prints at the same calls`, async (t) => {
    const folder = scratchFolder(t);
    const elf = elfPath(name);
    const trace = join(folder, 'boot.json');
    // Until then every run makes the same calls in the same order with the same values, but for the timer's.
    const args = ['**', until].flatMap((glob) => ['-p', `fn:${glob}`]);
    // gdb takes parameters that live in the frame to be there before the frame is.
    const without = [
      '**timer_tick',
      '**trap_handler',
      '**irq_*',
      '**timer_irq',
      '**rust_main',
      'labkern::arch::arm',
      '**{closure#*',
    ];
    args.push(...without.flatMap((glob) => ['-p', `!fn:${glob}`]));
    const { status } = await rsptrace(
      // Without stops the stack would lie elsewhere than gdb sees it: return addresses are kept on it.
      ...[
        'run',
        '--json',
        '--engine',
        'stop',
        '-o',
        trace,
        '-n',
        long ? '450' : '250',
        ...args,
        elf,
        '--',
        ...qemuArgv(name),
      ],
    ).ended;
    t.equal(status, 0);
    const records = JSON.parse(readFileSync(trace, 'utf8')) as {
      ph: string;
      cat?: string;
      name: string;
      args: { function: string; address: string; arguments?: string };
    }[];
    const begun = records.flatMap((record, i) => {
      if (record.ph !== 'B' || record.cat !== 'call') return [];
      // What it was given stands in the instant behind its begin.
      const behind = records[i + 1];
      const given = behind?.cat === 'detail' ? behind.args.arguments : undefined;
      return [{ ...record, args: { ...record.args, arguments: given } }];
    });
    const last = begun.findIndex((record) => record.name === until);
    const ours = begun.slice(0, last < 0 ? undefined : last);
    const addresses = new Map(ours.map((record) => [record.args.address, record.name]));
    const symbols = symbolNames(elf);
    t.ok(ours.length > (long ? 100 : 60), `${ours.length} calls of ${addresses.size} functions`);

    const stub = frozenGuest(t, name);
    const seen = await gdbArguments({
      folder,
      elf,
      socket: stub.socket,
      entries: [...addresses.keys()].map((address) => [address, symbols.get(address) ?? address]),
      until: begun[last]?.args.address ?? '0',
      exact,
      most: ours.length,
    });
    t.equal(seen.length, ours.length);
    let compared = 0;
    for (const [i, call] of seen.entries()) {
      const own = ours[i];
      if (own?.args.address !== call.entry) {
        t.fail(`call ${i}: ${own?.name} and ${addresses.get(call.entry)}`);
        break;
      }
      const values = valuesIn(own.args.arguments ?? '');
      for (const [argument, numbers] of Object.entries(call.arguments)) {
        // Types without numbers in them (a unit, a marker) are not printed.
        if (numbers === null || numbers.length === 0) continue;
        const text = values.get(argument) ?? '';
        // Here gdb prints where it is, and not what: that is what test/native/texts.rs itself says of its own.
        if (isFromMemory(text)) continue;
        const told = numbersIn(text).slice(0, numbers.length);
        if (told.join() !== numbers.join())
          t.fail(`call ${i}, ${own.name}, ${argument}: gdb ${numbers}, ours ${told} in ${text}`);
        compared++;
      }
    }
    t.ok(compared > 40, `${compared} arguments compared`);
  });
}

t.test('rv-embassy-o0: what a closure captures comes before its arguments', async (t) => {
  const [trace, elf] = [join(scratchFolder(t), 'out.jsonl'), elfPath('rv-embassy-o0')];
  const probe = 'fn:core::iter::adapters::map::map_fold::{closure#0}';
  const run = await rsptrace('run', '--json', '-o', trace, '-p', probe, elf, '--', ...qemuArgv('rv-embassy-o0')).ended;
  t.equal(run.status, 0, 'no memory is read where none is');
  const lines = readFileSync(trace, 'utf8').split('\n').filter(Boolean);
  const calls = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'call');
  t.ok(calls.length > 100, `${calls.length} calls`);
  // A fold goes on with what its last call gave.
  let [last, goesOn] = ['0', 0];
  for (const { detail, result } of calls) {
    const { 1: acc = '?' } = /^acc: (\d+), elt: &Entry \{ /.exec(detail) ?? [];
    if (acc !== '0' && acc !== last) t.fail(`${detail} behind ${last}`);
    if (acc === last) goesOn++;
    last = result;
  }
  t.ok(goesOn > calls.length / 2, `${goesOn} go on with the last result`);
});
