// docs/json.schema.json: whatever a command prints with --json in any test is held to it, and has no field that it does not name.
import type { ValidateFunction } from 'ajv';
import validators from 'json-schema';

const commands = [
  ...['report', 'info', 'replay', 'graph', 'convert', 'recover', 'dump', 'check', 'diff', 'merge', 'run', 'profile'],
  ...['attach', 'bt', 'detach', 'doctor', 'tasks', 'top', 'types', 'futures'],
];

/** What the schema calls the output of a command line. */
function definitionOf(words: readonly string[]): string {
  const has = (...options: string[]): boolean =>
    words.some((word) => options.some((option) => word === option || word.startsWith(`${option}=`)));
  // --scratch top is no command.
  const command = words.find((word, i) => commands.includes(word) && words[i - 1] !== '--scratch');
  if (command === undefined || command === 'run' || command === 'attach')
    return has('--dry-run') ? 'dry-run' : 'record';
  if (command === 'top' && has('--polls')) return 'top-polls';
  if (command === 'tasks' && has('--at')) return 'tasks-at';
  if (command === 'profile' && has('--off-cpu')) return 'profile-off-cpu';
  if (command === 'doctor' && has('--trampolines', '--code')) return 'doctor-trampolines';
  if (command === 'check' && has('--update')) return 'check-update';
  if (command === 'report' && has('--story')) return 'report-story';
  return command === 'report' && has('--callers', '--callees') ? 'report-callers' : command;
}

/** What of a command's output the schema does not allow. */
export function wrongJson(line: readonly string[], stdout: string): string[] {
  const end = line.indexOf('--');
  const words = end < 0 ? line : line.slice(0, end);
  // What the kinds of a plugin add is theirs.
  const isOther = words.includes('--help') || words.includes('--plugin');
  const isAsked = words.some((word) => /^--json(=true)?$/.test(word)) && !isOther;
  if (!isAsked) return [];
  const definition = definitionOf(words);
  return stdout.split('\n').flatMap((text) => {
    const value = parsed(text);
    if (value === undefined) return [];
    const isError = Object.keys(value).toSorted().join() === 'error,version';
    const name = isError ? 'error' : definition;
    const valid = validators[name] as ValidateFunction;
    if (valid(value)) return [];
    return (valid.errors ?? []).map(
      ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  });
}

/** Undefined for what is no whole object: a command that was killed has written a part of one. */
function parsed(text: string): object | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}
