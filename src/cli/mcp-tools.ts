// The tools of `rsptrace mcp`: commands, whose arguments come from the options' table.
import { filled } from './command.js';
import { commandOf } from './command-line.js';
import { listTexts } from './list-texts.js';
import { whyNot } from './settings/check.js';
import { type OptionSchema, valuesOf } from './settings/schema.js';

/** A tool as the protocol lists it. */
interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: object;
  readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean };
}

const looks = ['tasks', 'bt', 'profile', 'report', 'info'];
const changes = ['record', 'run', 'attach', 'detach'];
/** What writes files, runs code of a file, or is this server's to decide. */
const left: ReadonlySet<string> = new Set([...['output', 'record-wire', 'force', 'plugin', 'json', 'log', 'config']]);
const always: ReadonlySet<string> = new Set(['json', 'log', 'config', 'plugin']);

export function toolNames(allowsChanges: boolean): readonly string[] {
  return allowsChanges ? [...looks, ...changes] : looks;
}

export function toolOf(name: string): Tool {
  const { about } = commandOfTool(name);
  const { places, options } = argumentsOf(name);
  const required = places.filter(({ isNeeded }) => isNeeded).map(({ name: place }) => place);
  const isLook = looks.includes(name);
  return {
    name,
    description: `rsptrace ${name === 'record' ? '--remote' : name}: ${about}`,
    inputSchema: {
      type: 'object',
      additionalProperties: false,
      properties: {
        ...Object.fromEntries(
          places.map(({ name: place, about: text }) => [place, { type: 'string', description: text }]),
        ),
        ...options,
        ...(name === 'run' ? { command: { type: 'array', items: { type: 'string' }, description: 'Behind --' } } : {}),
      },
      ...(required.length > 0 ? { required } : {}),
    },
    annotations: { readOnlyHint: isLook, destructiveHint: !isLook },
  };
}

function commandOfTool(name: string) {
  return commandOf(name === 'record' ? undefined : name);
}

interface Place {
  readonly name: string;
  readonly about: string;
  readonly isNeeded: boolean;
}

/** A command's arguments in their order, and its options. The argument `elf` is `program`, since `--elf` is another. */
function argumentsOf(name: string): {
  readonly places: readonly Place[];
  readonly options: Readonly<Record<string, OptionSchema>>;
} {
  const { places, options } = commandOfTool(name);
  const hidden = looks.includes(name) ? left : always;
  return {
    places: Object.entries(places).map(([place, { describe = '', demandOption }]) => ({
      name: place === 'elf' ? 'program' : place,
      about: describe,
      isNeeded: demandOption === true,
    })),
    options: Object.fromEntries(
      Object.entries(options)
        .filter(([option]) => !hidden.has(option))
        .map(([option, one]) => [option, { ...valuesOf(one), description: filled(one.describe ?? '', listTexts) }]),
    ),
  };
}

/** Throws where a command is none, or would be left out. */
function wordsBehind(name: string, command: unknown): readonly string[] {
  if (command === undefined) return [];
  if (name !== 'run') throw new Error(`${name} has no argument 'command'`);
  const isList = Array.isArray(command) && command.every((word) => typeof word === 'string');
  if (!isList) throw new Error('command is a list of texts');
  return ['--', ...command];
}

/** The command line of a call. Throws where its arguments are none of the tool's, or would start a program. */
export function wordsOf(name: string, given: Readonly<Record<string, unknown>>): string[] {
  const { places, options } = argumentsOf(name);
  const { command, ...rest } = given;
  const behind = wordsBehind(name, command);
  const plain: string[] = [];
  for (const { name: place, isNeeded } of places) {
    const value = rest[place];
    if (value === undefined) {
      if (isNeeded) throw new Error(`${place} is missing`);
      continue;
    }
    if (typeof value !== 'string' || value.startsWith('-'))
      throw new Error(`${place} is a name, without a dash before it`);
    plain.push(value);
  }
  const said: string[] = [];
  for (const [key, value] of Object.entries(rest)) {
    if (places.some((place) => place.name === key)) continue;
    const option = Object.hasOwn(options, key) ? commandOfTool(name).options[key] : undefined;
    if (option === undefined) throw new Error(`${name} has no argument '${key}'`);
    const words = typeof value === 'number' ? String(value) : value;
    const why = whyNot(key, option, words);
    if (why !== undefined) throw new Error(why);
    if (typeof words === 'boolean') said.push(words ? `--${key}` : `--no-${key}`);
    else said.push(...[words].flat().map((one) => `--${key}=${one}`));
  }
  const isStarted =
    name === 'profile' && !['remote', 'pid', 'off-cpu'].some((key) => rest[key] !== undefined && rest[key] !== false);
  if (isStarted) throw new Error('profile takes remote, pid or off-cpu here: without them it would start the program');
  return [...(name === 'record' ? [] : [name]), ...said, '--json', ...plain, ...behind];
}
