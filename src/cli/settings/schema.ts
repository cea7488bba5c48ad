// The JSON schema of a file of settings, for editors. `npm run build` writes it: dist/settings.schema.json.
import { filled } from '../command.js';
import { settingsTables } from '../command-line.js';
import { listTexts } from '../list-texts.js';
import type { Option, Table } from '../options/option.js';
import { kindOf, never, ownKeys } from './check.js';

type Schema = Readonly<Record<string, unknown>>;
export type OptionSchema = Schema;

export function settingsSchema(): Schema {
  const tables = settingsTables();
  const all: Record<string, readonly Option<unknown>[]> = {};
  for (const table of Object.values(tables))
    for (const [name, option] of optionsIn(table)) all[name] = [...(all[name] ?? []), option];
  const top = Object.fromEntries(Object.entries(all).map(([name, options]) => [name, ofSeveral(options)]));
  const commands = Object.entries(tables).filter(([, table]) => optionsIn(table).length > 0);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Settings of rsptrace: rsptrace.toml, or [package.metadata.rsptrace] of a Cargo.toml',
    ...closed({
      ...top,
      ...own,
      ...Object.fromEntries(commands.map(([name, table]) => [name, ofCommand(name, table, top, tables)])),
    }),
  };
}

const texts = { type: 'array', items: { type: 'string' } };

const own: Schema = Object.fromEntries(
  Object.entries(ownKeys).map(([name, { isList, about }]) => [
    name,
    { ...(isList ? texts : { type: 'string' }), description: about },
  ]),
);

function closed(properties: Schema): Schema {
  return { type: 'object', additionalProperties: false, properties };
}

function optionsIn(table: Table): [string, Option<unknown>][] {
  return Object.entries(table).filter(([name]) => !never.has(name));
}

/** What the top says of the key, where that is the same. */
function sameAs(key: string, schema: Schema, tops: Schema): Schema {
  const isSame = JSON.stringify(tops[key]) === JSON.stringify(schema);
  return isSame ? { $ref: `#/properties/${key}` } : schema;
}

function sames(schemas: Schema): Schema {
  return Object.fromEntries(Object.keys(schemas).map((key) => [key, { $ref: `#/properties/${key}` }]));
}

/** Some options are called as a command is. */
function ofCommand(name: string, table: Table, tops: Schema, commands: object): Schema {
  const option = tops[name];
  const options = optionsIn(table).map(([key, one]) => [
    key,
    key in commands ? ofOption(one) : sameAs(key, ofOption(one), tops),
  ]);
  const inside = closed({ ...Object.fromEntries(options), ...sames(own) });
  const described = { description: name === 'record' ? 'For rsptrace without a command' : `For rsptrace ${name}` };
  return option === undefined ? { ...described, ...inside } : { ...described, anyOf: [inside, option] };
}

/** What stands at the top is for each command that has such an option. */
function ofSeveral(options: readonly Option<unknown>[]): Schema {
  const different = [...new Map(options.map((one) => [JSON.stringify(valuesOf(one)), valuesOf(one)])).values()];
  const [first] = options;
  return {
    ...(different.length === 1 ? different[0] : { allOf: different }),
    description: filled(first?.describe ?? '', listTexts),
  };
}

function ofOption(option: Option<unknown>): Schema {
  return { ...valuesOf(option), description: filled(option.describe ?? '', listTexts) };
}

/** What an option can be. */
export function valuesOf(option: Option<unknown>): Schema {
  const kind = kindOf(option);
  if (kind === 'flag') return { type: 'boolean' };
  if (kind === 'list') return texts;
  if (kind === 'choice') return { enum: option.choices };
  return { type: kind === 'text' ? 'string' : ['string', 'number'] };
}
