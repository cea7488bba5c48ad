// An option of the command line is declared once, in a table. From it come its parsing, its help, what a command gets
// of it, whether its words can be right at all (check-words.ts), and whether a saved value can be one of its own.

import type { Options, PositionalOptions } from 'yargs';
import { RsptraceError } from '../../base/errors.js';
import { timeOf } from '../../base/time.js';

/** An option whose value a command gets as a `T`. */
export interface Option<T> extends Options {
  /** Whether a value that was saved can be one. */
  readonly is: (value: unknown) => boolean;
  /** Only a type: no option has it. */
  readonly value?: T;
}

export interface Positional<T> extends PositionalOptions {
  readonly isMany?: boolean;
  readonly value?: T;
}

export type Table = Readonly<Record<string, Option<unknown>>>;
export type PositionalTable = Readonly<Record<string, Positional<unknown>>>;

/** What a command gets of its options. An argument is called `elf` already: those of `--elf` are its `programs`. */
export type Values<O extends Table | PositionalTable> = {
  readonly [K in keyof O as K extends 'elf' ? (O[K] extends Option<unknown> ? 'programs' : K) : K]: O[K] extends Option<
    infer T
  >
    ? T
    : O[K] extends Positional<infer T>
      ? T
      : never;
};

interface More extends Pick<Options, 'alias' | 'conflicts'> {
  readonly default?: string;
  readonly demandOption?: true;
}

/** Undefined where it is left out, unless it has a default or must be given. */
type Chosen<T, M extends More> = M extends { readonly default: string } | { readonly demandOption: true }
  ? T
  : T | undefined;

/** On or off. */
export function flag(describe: string, more: Pick<Options, 'alias' | 'default' | 'defaultDescription'> = {}) {
  return {
    ...{ type: 'boolean', default: false, describe },
    ...more,
    is: isFlag,
  } satisfies Option<boolean> as Option<boolean>;
}

export function text<const M extends More = More>(describe: string, more?: M): Option<Chosen<string, M>> {
  return { ...{ type: 'string', requiresArg: true, coerce: last, describe }, ...more, is: isText };
}

/** A text that stands for something else, such as a number. What `parse` throws is the answer to a wrong one. */
export function parsed<T, const M extends More = More>(
  describe: string,
  parse: (text: string) => T,
  more?: M,
): Option<Chosen<T, M>> {
  const coerce = (given: string | readonly string[] | undefined): T | undefined =>
    given === undefined ? undefined : parse(last(given));
  return { ...{ type: 'string', requiresArg: true, coerce, describe }, ...more, is: isCount };
}

export function choice<const C extends string, const M extends More = More>(
  choices: readonly C[],
  describe: string,
  more?: M,
): Option<Chosen<C, M>> {
  const is = (value: unknown): boolean => choices.some((one) => one === value);
  return { ...{ choices, requiresArg: true, coerce: last, describe }, ...more, is };
}

/** An option that may be given again and again. */
export function list<T = string>(describe: string, parse?: (text: string) => T): Option<readonly T[]> {
  const coerce = parse && ((given: readonly string[]): T[] => given.map(parse));
  return { type: 'string', array: true, nargs: 1, default: [], ...(coerce && { coerce }), describe, is: areTexts };
}

export function required(describe: string): Positional<string> {
  return { type: 'string', demandOption: true, describe };
}

export function optional(describe: string): Positional<string | undefined> {
  return { type: 'string', describe };
}

export function many(describe: string): Positional<readonly string[]> {
  return { type: 'string', array: true, demandOption: true, describe, isMany: true };
}

/** Options that stand under a heading of their own in help. */
export function under<const O extends Table>(heading: string, table: O): O {
  return Object.fromEntries(Object.entries(table).map(([name, option]) => [name, { ...option, group: heading }])) as O;
}

/** What a command gets that is given none of these options. */
export function defaultsOf<O extends Table>(table: O): Values<O> {
  const values = Object.entries(table).map(([name, { default: value, coerce }]) => [
    name === 'elf' ? 'programs' : name,
    coerce && value !== undefined ? coerce(value) : value,
  ]);
  return Object.fromEntries(values) as Values<O>;
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isFlag(value: unknown): boolean {
  return typeof value === 'boolean';
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && value > 0;
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}

/** An option that is given twice: the last value counts. */
function last<T>(value: T | readonly T[]): T {
  return Array.isArray(value) ? (value.at(-1) as T) : (value as T);
}

/** The words behind `--`; undefined without that. */
export interface Behind {
  readonly '--'?: readonly string[] | undefined;
}

/** What of a file of settings a command line was filled with. */
export interface SettingsTaken {
  readonly file: string;
  readonly keys: readonly string[];
}

export interface Declaration<P, O> {
  readonly about: string;
  /** Where one line is not enough. */
  readonly usage?: string;
  /** In their order. */
  readonly positionals: P;
  readonly options: O;
}

export type Given<P, O> = Values<P & PositionalTable> & Values<O & Table>;

/** What a command gets. */
export type ArgumentsOf<D> = D extends Declaration<infer P, infer O> ? Given<P, O> : never;

/** All of a command but its code. */
export function declared<const P extends PositionalTable, const O extends Table>(
  declaration: Declaration<P, O>,
): Declaration<P, O> {
  return declaration;
}

/** Those of some options that are given: neither left out nor a flag that is off. */
export function givenOf<const N extends string>(args: Partial<Readonly<Record<N, unknown>>>, names: readonly N[]): N[] {
  const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
  return names.filter((name) => args[name] !== undefined && args[name] !== false && !isEmpty(args[name]));
}

/** Throws `USAGE`. */
export function usage(message: string, hint = 'try --help'): RsptraceError {
  return new RsptraceError('USAGE', message, { hint });
}

/** A time as `perf` and `timeout` read it, in milliseconds. */
export function seconds(words: string): number {
  const ms = (timeOf(words, ['ms', 's', 'm', 'h'], true) ?? 0) / 1e6;
  if (ms > 0 && ms <= 2 ** 31 - 1) return ms;
  throw new Error(`'${words}' is not a length of time: write 10, 10s, 500ms or 2m, at most 24 days`);
}

/** A length of guest time, in nanoseconds. */
export function nanoseconds(words: string): number {
  const found = timeOf(words, ['ns', 'us', 'ms', 's']) ?? 0;
  if (found > 0 && found <= Number.MAX_SAFE_INTEGER) return found;
  throw new Error(`'${words}' is not a length of time: write 500ns, 10us, 1ms or 1s`);
}

export function count(option: string) {
  return (words: string): number => {
    const value = Number(words);
    if (Number.isSafeInteger(value) && value > 0) return value;
    throw new Error(`${option} takes a whole number above 0, not '${words}'`);
  };
}

/** What to write for a process whose number stands in the place of the ELF. */
export function asPid(elf: string | undefined): string | undefined {
  return /^\d+$/.test(elf ?? '') ? `a process of this machine is --pid ${elf}` : undefined;
}
