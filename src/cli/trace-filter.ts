// What `--filter` takes: `[fn:|poll:]GLOB [if CONDITION]`, for calls and polls of a saved trace.
//
//   condition  := all { '||' all }
//   all        := comparison { '&&' comparison }
//   comparison := NAME { '.' MEMBER } ('==' | '!=' | '<' | '<=' | '>' | '>=') literal
//   literal    := time | number | 'true' | 'false' | WORD | "'" TEXT "'" | '"' TEXT '"'
//
// NAME is one of `fields`, or an argument. With == and != a text may be a glob.

import { RsptraceError } from '../base/errors.js';
import { timeOf } from '../base/time.js';
import { compares, compileGlob, eachComparison, operators } from '../probes/index.js';
import { type AnyBegin, type AnyEnd, type Selection, stateText } from '../trace/index.js';

type Value = number | bigint | string | undefined;

/** What is compared: of a call, of a task. */
type FieldOf<T> = (thing: T, name: string) => Value;

/** A condition, for anything that has fields. */
type Condition = <T>(thing: T, field: FieldOf<T>) => boolean;

/** `--filter`, parsed. */
export interface TraceFilter {
  readonly text: string;
  readonly kind: 'fn' | 'poll' | undefined;
  readonly matches: (name: string) => boolean;
  readonly condition: Condition | undefined;
  /** Names of a condition that nothing had yet. */
  readonly unseen: Set<string>;
}

type Op = Parameters<typeof compares>[0];

const comparison = /^([\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}\p{N}_]+)*)\s*(==|!=|<=|>=|<|>)\s*(.+)$/su;
const units = ['ns', 'us', 'ms', 's', 'm'] as const;

/** The names that are no arguments. */
const fields = ['duration', 'time', 'hart', 'thread', 'depth', 'result', 'state', 'task', 'awaits'] as const;

/** Parses a filter; throws `USAGE`. */
export function parseFilter(text: string): TraceFilter {
  const [, kind, glob = '', words] = /^(?:(fn|poll):)?(.*?)(?:\s+if\s+(.*))?$/s.exec(text.trim()) ?? [];
  if (glob === '') throw noFilter(text, 'it has no name');
  const unseen = new Set<string>();
  const condition = words === undefined ? undefined : parseCondition(words, text, unseen);
  return { text, kind: kind as TraceFilter['kind'], matches: compileGlob(glob), condition, unseen };
}

/** The same as a trace's reader takes it. */
export function selectionOf({ kind, matches, condition }: TraceFilter): Selection {
  const holds = condition && ((begin: AnyBegin, end: AnyEnd | undefined) => condition({ begin, end }, callField));
  return { kind, matches, holds };
}

function parseCondition(words: string, text: string, unseen: Set<string>): Condition {
  const lists = eachComparison(words, (part) => parseComparison(part, text, unseen));
  return (thing, field) => lists.some((list) => list.every((one) => one(thing, field)));
}

function parseComparison(part: string, text: string, unseen: Set<string>): Condition {
  const [, path, operator = '', literal] = comparison.exec(part) ?? [];
  const op = operators[operator];
  if (path === undefined || literal === undefined || !op) throw noFilter(text, `'${part}' is no comparison`);
  const isSo = parseLiteral(literal.trim(), op, text);
  const [name = '', ...members] = path.split('.');
  unseen.add(name);
  return (thing, field) => {
    let value = field(thing, name);
    if (value === undefined) return false;
    unseen.delete(name);
    for (const member of members) value = typeof value === 'string' ? memberText(value, member) : undefined;
    return value !== undefined && isSo(value);
  };
}

function parseLiteral(literal: string, op: Op, text: string): (value: NonNullable<Value>) => boolean {
  const [, sign, length = ''] = /^(-?)(.*)$/s.exec(literal.replaceAll('_', '')) ?? [];
  const time = timeOf(length, units);
  if (time !== undefined) return (value) => isNumber(value, op, Math.round(sign === '-' ? -time : time));
  const plain = numberOf(literal);
  if (plain !== undefined) return (value) => isNumber(value, op, plain);
  if (op !== 'eq' && op !== 'ne') throw noFilter(text, `'${literal}' is no number and no time`);
  const [, one, other] = /^(?:'(.*)'|"(.*)")$/s.exec(literal) ?? [];
  const wanted = one ?? other ?? literal;
  const matches = compileGlob(wanted);
  const isIn = op === 'eq';
  return (value) => (isText(String(value), wanted) || matches(String(value))) === isIn;
}

/** The text itself, in quotes or not, or the variant that an enum is in: `Some` for `Some(3)`. */
function isText(value: string, wanted: string): boolean {
  if (value === wanted || value === `"${wanted}"` || value === `'${wanted}'`) return true;
  const [, variant] = /^(?:[\w:]*::)?(\w+)\s*[({]/.exec(value) ?? [];
  return variant === wanted;
}

function numberOf(value: NonNullable<Value>): number | bigint | undefined {
  if (typeof value !== 'string') return value;
  const digits = value.replaceAll('_', '');
  if (/^-?\d+$|^0(?:x[\da-f]+|b[01]+|o[0-7]+)$/i.test(digits)) {
    const wide = digits.startsWith('-') ? -BigInt(digits.slice(1)) : BigInt(digits.toLowerCase());
    return wide;
  }
  return /^-?\d+\.\d+(?:e[-+]?\d+)?$/i.test(digits) ? Number(digits) : undefined;
}

function isNumber(value: NonNullable<Value>, op: Op, wanted: number | bigint): boolean {
  const number = numberOf(value);
  return number !== undefined && compares(op, number, wanted);
}

interface Call {
  readonly begin: AnyBegin;
  readonly end: AnyEnd | undefined;
}

/** A field of a call or poll; of another name, an argument. */
function callField({ begin, end }: Call, name: string): Value {
  const argument = begin.type === 'call-begin' ? begin.arguments.find((each) => each.name === name) : undefined;
  if (argument) return argument.value;
  const isLost = end?.type === 'call-lost' || end?.type === 'poll-lost';
  switch (name as (typeof fields)[number]) {
    case 'duration':
      return end === undefined || isLost ? undefined : end.time - begin.time;
    case 'time':
      return begin.time;
    case 'hart':
    case 'thread':
      return begin.hart;
    case 'depth':
      return begin.depth;
    case 'result':
      if (end === undefined) return 'open';
      return end.type === 'call-end' || end.type === 'poll-end' ? end.result : 'lost';
    case 'state':
      return begin.type === 'poll-begin' && begin.state ? stateText(begin.state) : undefined;
    case 'task':
      return begin.type === 'poll-begin' && !begin.root.isPart ? begin.root.future.future : undefined;
    case 'awaits':
      return end?.type === 'poll-end' ? end.chain.at(-1)?.typeName : undefined;
  }
}

function noFilter(text: string, why: string): RsptraceError {
  return new RsptraceError('USAGE', `--filter '${text}': ${why}`, {
    hint: `write 'net::*', 'fn:net::* if duration > 1ms', 'poll:** if result == pending && hart == 1'; names: ${fields.join(', ')}, and arguments`,
  });
}

/** What a condition may compare besides arguments. */
export const filterFields: readonly string[] = fields;

/**
 * A member of a value that was printed as Rust prints it: `id` of `Header { id: 3, len: 4 }`, `0` of `Some(7)` or of
 * `(1, 2)`. Undefined if there is none.
 */
function memberText(text: string, member: string): string | undefined {
  const parts = partsOf(text);
  if (/^\d+$/.test(member)) return parts[Number(member)]?.replace(/^\w+: /, '');
  return parts.find((part) => part.startsWith(`${member}: `))?.slice(member.length + 2);
}

const quoted = /"(?:\\.|[^"\\])*"?|'(?:\\u\{\w*\}|\\?.)'/suy;

/** What stands between commas in the last brackets, because facts come before them: `Vec(len=2)[1, 2]`. */
function partsOf(text: string): string[] {
  let parts: string[] = [];
  let [depth, from] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    quoted.lastIndex = at;
    const letter = text[at] as string;
    const isIn = '({['.includes(letter);
    if (quoted.test(text)) at = quoted.lastIndex - 1;
    else if (isIn && depth++ === 0) [parts, from] = [[], at + 1];
    else if ((')}]'.includes(letter) && --depth === 0) || (letter === ',' && depth === 1)) {
      parts.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return parts;
}
