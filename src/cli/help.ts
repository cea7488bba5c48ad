// The pages of --help. They are loaded for help alone: what they say of lists takes half of the program.
import { runtimes, search } from '../async/tasks/index.js';
import { kinds } from '../probes/index.js';
import { textLines, wrapped } from '../text/index.js';
import { formats } from '../trace/index.js';
import type { Command } from './command.js';
import { everyOption } from './command-words.js';
import type { Option, PositionalTable, Table } from './options/option.js';

const about = 'rsptrace: what a Rust kernel or program is doing, and why it waits, through any GDB remote stub';

const examples: readonly (readonly [string, string])[] = [
  ['rsptrace --remote :1234 kernel.elf', 'trace a guest that waits at port 1234'],
  ["rsptrace --remote :1234 --probe 'poll:net::*' kernel.elf", 'only the Futures of one module'],
  ['rsptrace run -- qemu-system-riscv64 -M virt -nographic -kernel kernel.elf', 'start QEMU and trace it'],
];

const exitStatus =
  'Exit status: 0 recorded; 1 failed before recording; 2 wrong usage; 3 cut short by an error, what was recorded is kept; 4 a budget, or a limit of --fail-on or --findings error, is broken; 5 the guest failed';

/** What help says of the lists that plug-ins can extend, in the place of `{probes}`, `{formats}` ... */
const listTexts: Readonly<Record<string, string>> = {
  probes: kinds.map((kind) => kind.help).join(', '),
  formats: formats.map((format) => `${format.extensions[0]} (${format.name}): ${format.about}`).join('; '),
  extensions: formats.map(({ extensions: [first], name }) => `${first} (${name})`).join(', '),
  runtimes: [...runtimes, search].map(({ name }) => name).join(', '),
};

/** The page of a command, or of rsptrace, in lines of `width` columns where they can be broken. */
export function helpText(name: string | undefined, commands: Readonly<Record<string, Command>>, width: number): string {
  const { $0: whole, ...named } = commands;
  const shown = name === undefined ? whole : commands[name];
  if (!shown) return '';
  const { usage, positionals, options } = shown;
  const call = usage ?? usageOf(name ?? '', shown);
  const all = Object.entries({ '': whole as Command, ...named });
  const places = Object.entries(positionals).map(([place, { describe }]) => [place, describe] as const);
  const section = (title: string, rows: readonly (readonly [string, string])[]): string[] =>
    rows.length === 0 ? [] : ['', `${title}:`, ...lines(rows, width)];
  return textLines([
    ...(name === undefined ? [about] : [...call.split('\n').map((line) => line.trim()), '', shown.about]),
    ...section('Commands', name === undefined ? all.map(([one, each]) => [usageOf(one, each), each.about]) : []),
    ...section('Positionals', places),
    ...section('Options', Object.entries<Table[string]>({ ...everyOption, ...options }).map(optionRow)),
    ...(name === undefined ? [...section('Examples', examples), '', ...wrapped(exitStatus, width, '')] : []),
  ]);
}

/** `rsptrace merge <trace> <others..>`. */
function usageOf(name: string, { positionals }: Command): string {
  const places = Object.entries<PositionalTable[string]>(positionals).map(([place, { isRequired, isMany }]) => {
    const text = isMany ? `${place}..` : place;
    return isRequired ? `<${text}>` : `[${text}]`;
  });
  return ['rsptrace', ...(name === '' ? [] : [name]), ...places].join(' ');
}

function optionRow([name, option]: readonly [string, Option<unknown>]): readonly [string, string] {
  const { alias, describe, isRequired, choices, takes, default: usual, defaultText } = option;
  const text = describe.replace(/\{(\w+)\}/g, (_, list) => listTexts[list] ?? '');
  const said = defaultText ?? (takes === 'nothing' ? (usual === 'true' ? 'on' : undefined) : usual);
  const facts = [
    ...(isRequired ? ['required'] : []),
    ...(choices ? [`one of ${choices.join(', ')}`] : []),
    ...(said === undefined ? [] : [`default: ${said}`]),
  ];
  return [`${alias ? `-${alias}, ` : '    '}--${name}`, facts.length === 0 ? text : `${text} [${facts.join('; ')}]`];
}

/** The longest name that a text stands beside. */
const mostBeside = 34;

function lines(rows: readonly (readonly [string, string])[], width: number): string[] {
  const names = rows.map(([name]) => name.length).filter((length) => length <= mostBeside);
  const indent = ' '.repeat(Math.max(...names, 0) + 4);
  return rows.flatMap(([name, text]) => {
    const [first = '', ...more] = wrapped(`${indent}${text}`, width, indent);
    const isBeside = name.length + 4 <= indent.length;
    return isBeside ? [`  ${name}${first.slice(name.length + 2)}`, ...more] : [`  ${name}`, first, ...more];
  });
}
