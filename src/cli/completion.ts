import { factsOf, type OptionFacts } from './command-facts.js';
import { commandNames } from './command-line.js';
import { ExitCode } from './failure.js';
import type { CompletionArguments } from './options/own.js';

/**
 * `rsptrace completion SHELL`: its script, made of the options' table. Gives the exit status. `probes WORD -- LINE`:
 * what the scripts ask for, a probe a line.
 */
export async function printCompletion({ shell, word, command: line }: CompletionArguments): Promise<number> {
  if (shell === 'probes') {
    const found = await (await import('./complete-probes.js')).completedProbes(word ?? '', line);
    process.stdout.write(found.map((one) => `${one}\n`).join(''));
  } else process.stdout.write(shell === 'fish' ? fish() : shell === 'zsh' ? zsh() : bash());
  return ExitCode.recorded;
}

/** An option as a shell completes it. */
interface Completed extends Pick<OptionFacts, 'name' | 'letter' | 'choices' | 'about'> {
  readonly takesValue: boolean;
}

function completedOf({ name, letter, value, isOn, choices, about }: OptionFacts): Completed {
  const first = firstOf(about);
  // A flag that is on is switched off.
  const shown = isOn ? { name: `no-${name}`, about: `Not: ${first}` } : { name, about: first };
  return { ...shown, letter, takesValue: value !== undefined, choices };
}

/** What a line has room for. */
function firstOf(describe: string): string {
  const [first = ''] = describe.split(/[:;.,{(]( |$)|\{/);
  return first.trim();
}

const all = (): readonly (readonly [string, readonly Completed[]])[] =>
  ['', ...commandNames].map((name) => [name, factsOf(name === '' ? undefined : name).options.map(completedOf)]);

/** Those of a command that take probes, as `-p`; elsewhere that letter is another option's. */
const takesProbes = ({ name }: Completed): boolean => name === 'probe';

const spelled = ({ name, letter }: Completed): string[] => [
  `--${name}`,
  ...(letter === undefined ? [] : [`-${letter}`]),
];

/** What begins with a dash is an option, what stands behind one with choices one of these; all else is a file. */
function bash(): string {
  const values = all().flatMap(([command, options]) =>
    options
      .filter((option) => option.choices.length > 0 || takesProbes(option))
      .map((option) => {
        const words = spelled(option).map((one) => `${command}:${one}`);
        const fits = takesProbes(option) ? 'probes=yes' : `values='${option.choices.join(' ')}'`;
        return `    ${words.join(' | ')}) ${fits} ;;`;
      }),
  );
  const options = all().map(
    ([command, list]) =>
      `    ${command === '' ? "''" : command}) options='${list.map(({ name }) => `--${name}`).join(' ')}' ;;`,
  );
  return `# Made by rsptrace completion bash: source <(rsptrace completion bash)
_rsptrace() {
  # Words end at spaces here; those of readline end at a colon too.
  local line="\${COMP_LINE:0:COMP_POINT}" words cur prev name='' values='' probes='' options='' i
  read -ra words <<<"$line"
  if [ "\${line: -1}" = ' ' ]; then words+=(''); fi
  cur="\${words[-1]}" prev="\${words[-2]}"
  COMPREPLY=()
  for ((i = 1; i < \${#words[@]} - 1; i++)); do
    # A program's own arguments.
    if [ "\${words[i]}" = -- ]; then return; fi
    case "\${words[i]}" in
    ${commandNames.join(' | ')}) name="\${name:-\${words[i]}}" ;;
    esac
  done
  case "$name:$prev" in
${values.join('\n')}
  esac
  case "$name" in
${options.join('\n')}
  esac
  if [ -n "$probes" ]; then _rsptrace_probes "$cur"
  elif [ -n "$values" ]; then COMPREPLY=($(compgen -W "$values" -- "$cur"))
  elif [ "\${cur:0:1}" = - ]; then COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [ \${#words[@]} = 2 ]; then COMPREPLY=($(compgen -W '${commandNames.join(' ')}' -- "$cur"))
  fi
}
_rsptrace_probes() {
  local quote="\${1%%[!\\'\\"]*}" all i
  local cur="\${1#"$quote"}"
  cur="\${cur//\\\\/}"
  read -ra all <<<"$COMP_LINE"
  mapfile -t COMPREPLY < <(rsptrace completion probes "$cur" -- "\${all[@]}" 2>/dev/null)
  if [[ "\${COMPREPLY[0]}" = *: ]]; then compopt -o nospace; fi
  if [ -n "$quote" ]; then return; fi
  # Of a word without quotes readline replaces what stands behind the last colon.
  local before=''
  if [[ $COMP_WORDBREAKS = *:* ]]; then before="\${cur%"\${cur##*:}"}"; fi
  for i in "\${!COMPREPLY[@]}"; do printf -v 'COMPREPLY[i]' %q "\${COMPREPLY[i]#"$before"}"; done
}
complete -o default -o bashdefault -F _rsptrace rsptrace
`;
}

function zsh(): string {
  const quoted = (text: string): string => text.replaceAll(/['[\]:\\]/g, '');
  const specs = (option: Completed): string => {
    const { name, takesValue, choices, about } = option;
    const fits = takesProbes(option) ? '_rsptrace_probes' : choices.length > 0 ? `(${choices.join(' ')})` : '_files';
    const words = spelled(option);
    const either = words.length > 1 ? `{${words.join(',')}}` : words[0];
    return `'*'${either}'[${quoted(about)}]${takesValue ? `:${name}:${fits}` : ''}'`;
  };
  const cases = all().map(([command, list]) => {
    const lines = list.map((each) => `      ${specs(each)} \\`);
    return `    ${command === '' ? "''" : command})\n      _arguments \\\n${lines.join('\n')}\n      '*:file:_files' ;;`;
  });
  return `#compdef rsptrace
# Made by rsptrace completion zsh: source <(rsptrace completion zsh)
_rsptrace_probes() {
  local -a found
  found=("\${(@f)$(rsptrace completion probes "\${(Q)PREFIX}" -- "\${words[@]}" 2>/dev/null)}")
  # Behind a colon a name goes on.
  compadd -S '' -- \${(M)found:#*:}
  compadd -- \${found:#(*:|)}
}
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
    const seen = '__fish_seen_subcommand_from';
    const when = command === '' ? `not ${seen} ${commandNames.join(' ')}` : `${seen} ${command}`;
    return list.map((option) => {
      const { name, letter, takesValue, choices, about } = option;
      const fits = takesProbes(option) ? '(__rsptrace_probes)' : choices.join(' ');
      const value = !takesValue ? '' : fits === '' ? ' -r' : ` -x -a ${quoted(fits)}`;
      const short = letter === undefined ? '' : ` -s ${letter}`;
      return `complete -c rsptrace -n ${quoted(when)}${short} -l ${name}${value} -d ${quoted(about)}`;
    });
  });
  return `# Made by rsptrace completion fish: rsptrace completion fish | source
function __rsptrace_probes
  rsptrace completion probes (string trim -l -c "'\\"" -- (commandline -ct)) -- (commandline -op) 2>/dev/null
end
complete -c rsptrace -n __fish_use_subcommand -a ${quoted(commandNames.join(' '))}
${lines.join('\n')}
`;
}
