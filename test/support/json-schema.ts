// docs/json.schema.json: whatever a command prints with --json in any test is held to it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';

interface Schema {
  readonly [key: string]: unknown;
  readonly $defs: Readonly<Record<string, unknown>>;
}

const path = join(import.meta.dirname, '../../docs/json.schema.json');
const compiled = new Map<boolean, Ajv2020.default>();

function ajv(isStrict: boolean): Ajv2020.default {
  const known = compiled.get(isStrict);
  if (known) return known;
  const schema = JSON.parse(readFileSync(path, 'utf8')) as Schema;
  // Code that is not optimised is made in half the time, and runs for milliseconds.
  const made = new Ajv2020.default({ allowUnionTypes: true, strictRequired: false, code: { optimize: false } });
  made.addSchema(isStrict ? (closed(schema) as Schema) : schema, 'json');
  compiled.set(isStrict, made);
  return made;
}

/** With no other fields than those that it names. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inside = Object.fromEntries(Object.entries(schema).map(([key, one]) => [key, closed(one)]));
  const isObject = 'properties' in schema && [(schema as { readonly type?: unknown }).type].flat().includes('object');
  return isObject ? { ...inside, additionalProperties: false } : inside;
}

const commands = [
  ...['report', 'info', 'replay', 'graph', 'convert', 'recover', 'dump', 'check', 'diff', 'merge', 'run', 'profile'],
  ...['attach', 'bt', 'detach', 'doctor', 'tasks', 'top', 'types', 'futures'],
];

/** What the schema calls the output of a command line. */
function definitionOf(words: readonly string[]): string {
  const has = (...options: string[]): boolean =>
    words.some((word) => options.some((option) => word === option || word.startsWith(`${option}=`)));
  const command = words.find((word) => commands.includes(word));
  if (command === undefined || command === 'run' || command === 'attach')
    return has('--dry-run') ? 'dry-run' : 'record';
  if (command === 'top' && has('--polls')) return 'top-polls';
  if (command === 'tasks' && has('--at')) return 'tasks-at';
  if (command === 'profile' && has('--off-cpu')) return 'profile-off-cpu';
  if (command === 'doctor' && has('--trampolines', '--code')) return 'doctor-trampolines';
  if (command === 'check' && has('--update')) return 'check-update';
  return command === 'report' && has('--callers', '--callees') ? 'report-callers' : command;
}

/** What of a command's output the schema does not allow. `isStrict`: nor fields that it does not name. */
export function wrongJson(line: readonly string[], stdout: string, isStrict = false): string[] {
  const end = line.indexOf('--');
  const words = end < 0 ? line : line.slice(0, end);
  const isAsked = words.some((word) => /^--json(=true)?$/.test(word)) && !words.includes('--help');
  if (!isAsked) return [];
  const definition = definitionOf(words);
  const all = ajv(isStrict);
  return stdout.split('\n').flatMap((text) => {
    const value = parsed(text);
    if (value === undefined) return [];
    const isError = Object.keys(value).toSorted().join() === 'error,version';
    const name = isError ? 'error' : definition;
    const valid = all.getSchema(`json#/$defs/${name}`) as ValidateFunction;
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
