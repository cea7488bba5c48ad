// A budget file is JSON. What is wrong with it is said with the path to it, as in `times.poll:worker.max`.
import { RsptraceError } from '../base/errors.js';
import { nearestWords } from '../base/search.js';

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

export function invalid(at: string, message: string, hint?: string): RsptraceError {
  return new RsptraceError('BUDGET_INVALID', `${at === '' ? 'the budget file' : `'${at}'`} ${message}`, {
    hint: hint ?? 'docs/budget.schema.json says what a budget file may hold',
  });
}

export function below(at: string, key: string | number): string {
  return at === '' ? String(key) : `${at}.${key}`;
}

/** An object, of any keys, or of `known` ones. Throws `BUDGET_INVALID`. */
export function objectAt(value: Json, at: string, known?: readonly string[]): JsonObject {
  if (typeof value !== 'object' || value === null || isList(value)) {
    throw invalid(at, `is to be an object, not ${kindOf(value)}`);
  }
  for (const key of known ? Object.keys(value) : []) {
    if (known?.includes(key)) continue;
    const near = nearestWords(key, known ?? []);
    const which = near.length > 0 ? `did you mean ${near.join(', ')}?` : `known: ${(known ?? []).join(', ')}`;
    throw invalid(below(at, key), 'is no key that a budget file has there', which);
  }
  return value;
}

export function listAt(value: Json, at: string): readonly Json[] {
  if (!isList(value)) throw invalid(at, `is to be a list, not ${kindOf(value)}`);
  return value;
}

export function textAt(value: Json, at: string): string {
  if (typeof value !== 'string') throw invalid(at, `is to be a text, not ${kindOf(value)}`);
  return value;
}

/** A whole number from 0 on. */
export function countAt(value: Json, at: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw invalid(at, `is to be a whole number from 0 on, not ${typeof value === 'number' ? value : kindOf(value)}`);
  }
  return value;
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function kindOf(value: Json): string {
  if (value === null) return 'null';
  if (isList(value)) return 'a list';
  if (typeof value === 'string') return `the text '${value}'`;
  return typeof value === 'object' ? 'an object' : String(value);
}
