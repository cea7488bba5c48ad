// A budget file: what a boot must do, and how long it may take. JSON; its schema is docs/budget.schema.json.
import { readFileSync, writeFileSync } from 'node:fs';
import { messageOf, RsptraceError } from '../base/errors.js';
import { invalid, type Json, type JsonObject, objectAt } from './json.js';
import type { Names, Section, SectionKind } from './section.js';
import { sections } from './sections/index.js';

/** Of the layout of a budget file. */
const BUDGET_VERSION = 1;

const headKeys = ['$schema', 'version', 'about'];

/** A budget file that was read, ready to see one trace. */
export interface BudgetFile {
  readonly path: string;
  /** The sections as the file has them. */
  readonly asked: JsonObject;
  /** What the file holds besides sections. */
  readonly head: JsonObject;
  readonly sections: readonly { readonly kind: SectionKind; readonly section: Section }[];
}

/** Reads a budget file. Throws `BUDGET_UNREADABLE`, `BUDGET_INVALID`. */
export function readBudget(path: string): BudgetFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable(path, messageOf(error), 'rsptrace check TRACE --budget FILE --update writes one from a trace');
  }
  let json: Json;
  try {
    json = JSON.parse(text) as Json;
  } catch (error) {
    throw unreadable(path, `it is no JSON: ${messageOf(error)}`);
  }
  return parseBudget(json, path);
}

/** A budget file that would ask of a program what a trace with these names has, without limits yet. */
export function proposedBudget(names: Names, path: string): BudgetFile {
  const json: Record<string, Json> = { version: BUDGET_VERSION };
  for (const { key, proposed } of sections) {
    const section = proposed(names);
    if (section !== undefined) json[key] = section;
  }
  return parseBudget(json, path);
}

function parseBudget(json: Json, path: string): BudgetFile {
  const known = [...headKeys, ...sections.map(({ key }) => key)];
  const { $schema, version = BUDGET_VERSION, about, ...rest } = objectAt(json, '', known);
  if (version !== BUDGET_VERSION) {
    throw invalid('version', `is ${JSON.stringify(version)}, and ${BUDGET_VERSION} is the one that is known here`);
  }
  const parsed = sections.flatMap((kind) => {
    const value = rest[kind.key];
    return value === undefined ? [] : [{ kind, section: kind.parse(value, kind.key) }];
  });
  if (parsed.length === 0) {
    throw invalid('', 'asks for nothing', `it may have ${sections.map(({ key }) => key).join(', ')}`);
  }
  const head = { ...($schema === undefined ? {} : { $schema }), version, ...(about === undefined ? {} : { about }) };
  return { path, asked: rest, head, sections: parsed };
}

/** What a budget asked for that is not asked any more: `times poll:**`, `never reset`. */
export function leftOutOf(asked: JsonObject, written: JsonObject): string[] {
  return Object.entries(asked).flatMap(([key, before]) => {
    const after = new Set(namesIn(written[key]));
    return namesIn(before)
      .filter((name) => !after.has(name))
      .map((name) => `${key} ${name}`);
  });
}

/** The names of a section: of a list, or the keys. */
function namesIn(section: Json | undefined): string[] {
  if (Array.isArray(section)) return section.filter((one) => typeof one === 'string');
  return typeof section === 'object' && section !== null ? Object.keys(section) : [];
}

/** Writes a budget file. Throws `OUTPUT_CANNOT_WRITE`. */
export function writeBudget(path: string, json: JsonObject): void {
  try {
    writeFileSync(path, `${JSON.stringify(json, null, 2)}\n`);
  } catch (error) {
    throw new RsptraceError('OUTPUT_CANNOT_WRITE', `the budget cannot be written to ${path}: ${messageOf(error)}`, {
      hint: 'name a file that can be written with --budget',
      cause: error,
    });
  }
}

function unreadable(path: string, why: string, hint?: string): RsptraceError {
  return new RsptraceError('BUDGET_UNREADABLE', `the budget ${path} cannot be read: ${why}`, {
    hint: hint ?? 'docs/check.md shows one',
  });
}
