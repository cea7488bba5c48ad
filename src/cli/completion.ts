import { commandNames, optionsOf } from './command-line.js';
import { ExitCode } from './failure.js';
import type { Shell } from './options/completion.js';
import type { Table } from './options/option.js';

/** An option as a shell completes it. */
interface Completed {
  /** Without dashes: `by`, `no-browser`. */
  readonly name: string;
  readonly letter: string | undefined;
  readonly takesValue: boolean;
  /** Its values, if these are few. */
  readonly choices: readonly string[];
  readonly about: string;
}

/** `rsptrace completion SHELL`: its script, made of the options' table. Gives the exit status. */
export async function printCompletion(shell: Shell): Promise<number> {
  process.stdout.write(shell === 'fish' ? fish() : shell === 'zsh' ? zsh() : bash());
  return ExitCode.recorded;
}

const everywhere: readonly Completed[] = [
  { name: 'help', letter: 'h', takesValue: false, choices: [], about: 'Show help' },
  { name: 'version', letter: 'V', takesValue: false, choices: [], about: 'Show version number' },
];

function completedOf(table: Table): Completed[] {
  const own = Object.entries(table).map(([name, option]): Completed => {
    const { type, alias, choices = [], describe = '' } = option;
    const letter = [alias ?? []].flat().find((one) => one.length === 1);
    const isFlag = type === 'boolean';
    // A flag that is on is switched off.
    const isOn = isFlag && option.default === true;
    const about = firstOf(describe);
    const shown = isOn ? { name: `no-${name}`, about: `Not: ${about}` } : { name, about };
    return { ...shown, letter, takesValue: !isFlag, choices: choices.map(String) };
  });
  return [...own, ...everywhere];
}

/** What a line has room for. */
function firstOf(describe: string): string {
  const [first = ''] = describe.split(/[:;.,{(]( |$)|\{/);
  return first.trim();
}

const all = (): readonly (readonly [string, readonly Completed[]])[] =>
  ['', ...commandNames].map((name) => [name, completedOf(optionsOf(name === '' ? undefined : name))]);

/** What begins with a dash is an option, and what stands behind one with choices is one of these; all else is a file. */
function bash(): string {
  const values = all().flatMap(([command, options]) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .map(({ name, choices }) => `    ${command}:--${name}) values='${choices.join(' ')}' ;;`),
  );
  const options = all().map(
    ([command, list]) =>
      `    ${command === '' ? "''" : command}) options='${list.map(({ name }) => `--${name}`).join(' ')}' ;;`,
  );
  return `# Made by rsptrace completion bash: source <(rsptrace completion bash)
_rsptrace() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" name='' values='' options='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    # A program's own arguments.
    if [ "\${COMP_WORDS[i]}" = -- ]; then return; fi
    case "\${COMP_WORDS[i]}" in
    ${commandNames.join(' | ')}) name="\${name:-\${COMP_WORDS[i]}}" ;;
    esac
  done
  case "$name:$prev" in
${values.join('\n')}
  esac
  case "$name" in
${options.join('\n')}
  esac
  if [ -n "$values" ]; then COMPREPLY=($(compgen -W "$values" -- "$cur"))
  elif [ "\${cur:0:1}" = - ]; then COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W '${commandNames.join(' ')}' -- "$cur"))
  fi
}
complete -o default -o bashdefault -F _rsptrace rsptrace
`;
}

function zsh(): string {
  const quoted = (text: string): string => text.replaceAll(/['[\]:\\]/g, '');
  const specs = ({ name, letter, takesValue, choices, about }: Completed): string => {
    const value = !takesValue ? '' : choices.length > 0 ? `:${name}:(${choices.join(' ')})` : `:${name}:_files`;
    const spelled = letter === undefined ? `--${name}` : `{-${letter},--${name}}`;
    return `'*'${spelled}'[${quoted(about)}]${value}'`;
  };
  const cases = all().map(([command, list]) => {
    const lines = list.map((each) => `      ${specs(each)} \\`);
    return `    ${command === '' ? "''" : command})\n      _arguments \\\n${lines.join('\n')}\n      '*:file:_files' ;;`;
  });
  return `#compdef rsptrace
# Made by rsptrace completion zsh: source <(rsptrace completion zsh)
_rsptrace() {
  local name='' word
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    case "$word" in
    ${commandNames.join(' | ')}) name="$word"; break ;;
    esac
  done
  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then compadd -- ${commandNames.join(' ')}; _files; return; fi
  case "$name" in
${cases.join('\n')}
  esac
}
compdef _rsptrace rsptrace
`;
}

function fish(): string {
  const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, (each) => `\\${each}`)}'`;
  const lines = all().flatMap(([command, list]) => {
    const when = command === '' ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${command}`;
    return list.map(({ name, letter, takesValue, choices, about }) => {
      const value = !takesValue ? '' : choices.length > 0 ? ` -x -a ${quoted(choices.join(' '))}` : ' -r';
      const short = letter === undefined ? '' : ` -s ${letter}`;
      return `complete -c rsptrace -n ${quoted(when)}${short} -l ${name}${value} -d ${quoted(about)}`;
    });
  });
  return `# Made by rsptrace completion fish: rsptrace completion fish | source
complete -c rsptrace -n __fish_use_subcommand -a ${quoted(commandNames.join(' '))}
${lines.join('\n')}
`;
}
