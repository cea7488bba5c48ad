// A plug-in is an ES module. Its default export has `kinds`, `formats` and `runtimes`: the objects that `attach` takes.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugins } from '../api/index.js';
import { addForeignCode, messageOf, RsptraceError } from '../base/errors.js';
import { nearestWords } from '../base/search.js';
import { kinds } from '../probes/index.js';

/** All that the plug-ins of one command give. */
export type LoadedPlugins = Required<Plugins>;

/** The members that one object of a list must have. */
type Members = Readonly<Record<string, 'string' | 'function' | 'extensions'>>;

const lists: Readonly<Record<keyof LoadedPlugins, Members>> = {
  kinds: { name: 'string', help: 'string', parse: 'function', resolve: 'function', report: 'function' },
  formats: {
    ...{ name: 'string', extensions: 'extensions', about: 'string', use: 'string' },
    ...{ recognizes: 'function', open: 'function' },
  },
  runtimes: { name: 'string', roots: 'function' },
};

const hint =
  'its default export is an object with kinds, formats or runtimes, each a list: docs/api.md describes their objects';

/**
 * Loads the files of `--plugin`, in their order.
 * @throws RsptraceError `PLUGIN_UNUSABLE`
 */
export async function loadPlugins(paths: readonly string[]): Promise<LoadedPlugins> {
  const all: Plugins[] = [];
  for (const path of paths) all.push(await load(path));
  const found = {
    kinds: all.flatMap((each) => each.kinds ?? []),
    formats: all.flatMap((each) => each.formats ?? []),
    runtimes: all.flatMap((each) => each.runtimes ?? []),
  };
  const names = kinds.map(({ name }) => name);
  for (const { name } of found.kinds) {
    if (!/^\w+$/.test(name))
      throw new RsptraceError(
        'PLUGIN_UNUSABLE',
        `a plug-in has a kind of probe ${name}, which no probe can begin with`,
        {
          hint: 'a name has letters, digits and _',
        },
      );
    if (names.includes(name))
      throw new RsptraceError('PLUGIN_UNUSABLE', `a plug-in has a kind of probe ${name}, which there is already`, {
        hint: 'give it another name, which its probes begin with',
      });
    names.push(name);
  }
  return found;
}

async function load(path: string): Promise<Plugins> {
  const file = resolve(path);
  if (!existsSync(file)) throw unusable(path, 'there is no such file', "write --plugin FILE, an ES module's path");
  const { href } = pathToFileURL(file);
  addForeignCode(href, path);
  let module: { readonly default?: unknown };
  try {
    module = await import(href);
  } catch (error) {
    const message = `it cannot be loaded: ${messageOf(error).split('\n', 1)[0]}`;
    const hint = /\.[cm]?js$/.test(path)
      ? `node --check ${path} says where it is no JavaScript`
      : 'give an ES module: a file named .mjs or .js';
    throw unusable(path, message, hint, error);
  }
  return verified(path, module.default);
}

function verified(path: string, plugin: unknown): Plugins {
  if (!isObject(plugin)) throw unusable(path, 'it has no default export with kinds, formats or runtimes');
  const known = Object.keys(lists);
  for (const name of Object.keys(plugin)) {
    if (known.includes(name)) continue;
    const [near] = nearestWords(name, known);
    throw unusable(path, `its default export has a member ${name}${near ? `, is ${near} meant?` : ''}`);
  }
  if (!known.some((name) => plugin[name] !== undefined)) throw unusable(path, 'its default export is empty');
  for (const [name, members] of Object.entries(lists)) {
    const list = plugin[name] ?? [];
    if (!Array.isArray(list)) throw unusable(path, `its ${name} are no list`);
    for (const [index, one] of list.entries()) verifyOne(path, `${name}[${index}]`, one, members);
  }
  return plugin;
}

function verifyOne(path: string, where: string, one: unknown, members: Members): void {
  if (!isObject(one)) throw unusable(path, `${where} is no object`);
  for (const [name, type] of Object.entries(members)) {
    const value = one[name];
    if (type === 'extensions' ? !areExtensions(value) : typeof value !== type || value === '')
      throw unusable(path, `${where} has no ${name}, ${wanted[type]}`);
  }
}

const wanted = { string: 'a text', function: 'a function', extensions: "a list such as ['.csv'], in lower case" };

function areExtensions(value: unknown): boolean {
  return (
    Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string' && /^\.[^A-Z]+$/.test(one))
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function unusable(path: string, why: string, way = hint, cause?: unknown): RsptraceError {
  return new RsptraceError('PLUGIN_UNUSABLE', `the plug-in ${path} cannot be used: ${why}`, { hint: way, cause });
}
