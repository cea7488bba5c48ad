// Man pages: rsptrace(1), and one a command. Names, arguments and options are those of the command line's tables; the
// description is how the command's page in docs/ begins.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const exitStatus = [
  ['0', 'The command did what it was asked for; a recording was made.'],
  ['1', 'It failed, a recording before it began.'],
  ['2', 'The command line is wrong.'],
  ['3', 'An error cut it short; what was recorded is kept.'],
  ['4', 'A budget, or a limit of --fail-on or --findings error, is broken.'],
  ['5', 'The guest failed.'],
];
const whatItIs = 'what a Rust kernel or program is doing, and why it waits';
const environment = [
  ['RSPTRACE_LOG', 'What --log says where it is not given.'],
  [
    'RSPTRACE_CACHE',
    'The folder for what is kept for the next start, or off. Default: rsptrace in $XDG_CACHE_HOME, or in ~/.cache.',
  ],
  ['RSPTRACE_BUDGET', 'A factor for what reading a file may cost: 10 for files ten times as large as usual.'],
  ['NO_COLOR', 'No colours, if it is not empty.'],
];

/** Text as roff reads it: nothing of it is a request or an escape, and a dash is the one that is typed. */
const escaped = (text) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replace(/^\./gm, '\\&.');
const bold = (text) => `\\fB${escaped(text)}\\fR`;
const italic = (text) => `\\fI${escaped(text)}\\fR`;

/** A paragraph of Markdown: code is bold, links are their text. */
const inline = (text) =>
  text
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
    .map((part) => {
      if (/^`[^`]+`$/.test(part)) return bold(part.slice(1, -1));
      return /^\*\*[^*]+\*\*$/.test(part) ? bold(part.slice(2, -2)) : escaped(part);
    })
    .join('')
    .replace(/^\./gm, '\\&.');

const tagged = (tag, text) => ['.TP', tag, text];

/** The cells of a row of a table. */
const cells = (line) =>
  line
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));

const table = (block) => {
  const rows = block.split('\n').map(cells);
  return rows.slice(2).flatMap(([first = '', ...rest]) => {
    const [tag, ...others] = first === '' ? rest : [first, ...rest];
    return tagged(inline(tag ?? ''), inline(others.filter((cell) => cell !== '').join('; ')) || '\\&');
  });
};

const items = (block) =>
  block
    .split(/^(?=- )/m)
    .flatMap((item) => ['.IP \\(bu 2', inline(item.replace(/^- /, '').replaceAll(/\n\s+/g, '\n'))]);

/** Blocks of Markdown that a blank line separates, which fences have inside. */
function blocksOf(text) {
  return text
    .split(/^(```[^\n]*\n.*?^```$)/ms)
    .flatMap((part) => (part.startsWith('```') ? [part] : part.split(/\n{2,}/)))
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function roff(markdown) {
  return blocksOf(markdown).flatMap((block) => {
    if (block.startsWith('```')) {
      const lines = block.split('\n').slice(1, -1);
      return ['.PP', '.RS 4', '.nf', ...lines.map((line) => escaped(line).replace(/^$/, '.sp')), '.fi', '.RE'];
    }
    if (block.startsWith('#')) return [`.SS ${escaped(block.replace(/^#+ /, ''))}`];
    if (block.startsWith('|')) return table(block);
    return block.startsWith('- ') ? items(block) : ['.PP', inline(block)];
  });
}

/** How the page of a command begins, up to the first section; a section of report.md where it has no page. */
function described(docs, name) {
  const page = join(docs, `${name}.md`);
  if (name !== 'report' && existsSync(page)) return { page: `${name}.md`, text: beginning(readFileSync(page, 'utf8')) };
  const sections = readFileSync(join(docs, 'report.md'), 'utf8').split(/^## /m);
  const section = sections.find((one) => one.startsWith(`${name}\n`));
  return section === undefined ? undefined : { page: `report.md#${name}`, text: section.slice(name.length) };
}
const beginning = (text) => text.replace(/^# .*\n/, '').split(/^## /m)[0];

function optionLines({ name, letter, isOn, value, choices, about, preset }) {
  const spelled = [
    ...(letter === undefined ? [] : [bold(`-${letter}`)]),
    bold(`--${name}`),
    ...(isOn ? [bold(`--no-${name}`)] : []),
  ].join(', ');
  const takes = value === undefined ? '' : ` ${italic(value)}`;
  const facts = [
    ...(choices.length > 0 ? [`One of ${choices.join(', ')}.`] : []),
    ...(preset === undefined ? [] : [`Default: ${preset}.`]),
  ];
  const sentence = /[.:]$/.test(about) ? about : `${about}.`;
  return tagged(`${spelled}${takes}`, escaped([sentence, ...facts].join(' ')));
}

/** Of the last commit; of a build from an archive today's. */
function dateOf(folder) {
  try {
    const words = ['log', '-1', '--format=%cs'];
    return execFileSync('git', words, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return new Date().toISOString().slice(0, 10);
  }
}

const pageOf = (name) => (name === undefined ? 'rsptrace' : `rsptrace-${name}`);

function page(name, facts, { version, date, docs, commands }) {
  const { about, usage, positionals, options } = facts;
  const found = described(docs, name ?? 'record');
  const others = commands.map(({ name: other }) => other).filter((other) => other !== name);
  const see = name === undefined ? others : [undefined, ...others];
  return (
    [
      '.\\" Made by rsptrace\\(aqs build of its table of options.',
      `.TH ${pageOf(name).toUpperCase().replaceAll('-', '\\-')} 1 ${date} "rsptrace ${version}" "rsptrace"`,
      '.SH NAME',
      `${escaped(pageOf(name))} \\- ${escaped(name === undefined ? whatItIs : about)}`,
      '.SH SYNOPSIS',
      '.nf',
      ...(name === undefined ? ['rsptrace --remote ADDR [options] <elf>', 'rsptrace COMMAND ...'] : usage).map(bold),
      '.fi',
      '.SH DESCRIPTION',
      ...(found === undefined ? ['.PP', `${escaped(about[0].toUpperCase() + about.slice(1))}.`] : roff(found.text)),
      ...(name === undefined
        ? ['.SH COMMANDS', ...commands.flatMap((one) => tagged(bold(one.name), escaped(one.about)))]
        : []),
      ...(positionals.length === 0 ? [] : ['.SH ARGUMENTS']),
      ...positionals.flatMap(({ name: argument, about: text }) => tagged(italic(argument), `${escaped(text)}.`)),
      '.SH OPTIONS',
      ...options.flatMap(optionLines),
      '.SH EXIT STATUS',
      ...exitStatus.flatMap(([status, text]) => tagged(bold(status), escaped(text))),
      '.SH ENVIRONMENT',
      ...environment.flatMap(([variable, text]) => tagged(bold(variable), escaped(text))),
      '.SH FILES',
      ...tagged(
        bold('rsptrace.toml'),
        'Settings, from the working folder upward; or a table of Cargo.toml: docs/settings.md.',
      ),
      '.SH SEE ALSO',
      see.map((other) => `\\fB${escaped(pageOf(other))}\\fR(1)`).join(',\n'),
      ...(found === undefined ? [] : ['.PP', `docs/${escaped(found.page)} in the package has all about it.`]),
      '',
    ]
      .join('\n')
      // A section begins a paragraph by itself.
      .replaceAll(/^(\.S[HS] .*)\n\.PP$/gm, '$1')
  );
}

/**
 * Writes all pages into a folder. `factsOf` gives what is known of a command, `undefined` for rsptrace without one;
 * `docs`: the folder of the documents.
 */
export function writeManPages(folder, { commandNames, factsOf, version, docs }) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const commands = commandNames
    .map((name) => ({ name, about: factsOf(name).about }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const date = dateOf(docs);
  for (const name of [undefined, ...commandNames])
    writeFileSync(join(folder, `${pageOf(name)}.1`), page(name, factsOf(name), { version, date, docs, commands }));
}
