import type { Budget } from '../base/budget.js';
import { demangle } from './demangle.js';
import type { Die } from './die.js';
import { linkageNameOf, pathOf, stripGenerics } from './names.js';

/**
 * A function's name with its modules and without generic arguments. DWARF calls an impl block `{impl#1}`. The mangled
 * name says which type it is for, in both manglings: `labkern::work::Disk::seek`, `<labkern::work::Disk as
 * labkern::work::BlockDev>::read`.
 */
export function functionName(die: Die): string {
  return namedPath(pathOf(die), linkageNameOf(die), die.unit.budget).join('::');
}

/**
 * A path without generic arguments. Its part up to the last `{impl#N}` is replaced by that part of the mangled name.
 */
export function namedPath(path: readonly string[], linkageName: string | undefined, budget: Budget): string[] {
  const plain = path.map(stripGenerics);
  const impl = lastImpl(plain);
  if (impl < 0 || linkageName === undefined) return plain;
  const owner = implOwner(demangle(linkageName, budget), plain.length - impl - 1);
  return owner === undefined ? plain : [owner, ...plain.slice(impl + 1)];
}

function lastImpl(path: readonly string[]): number {
  return path.findLastIndex((part) => /^\{impl#\d+\}$/.test(part));
}

/**
 * The type (and trait) of the impl block that a demangled name stands in, `inner` components before its end.
 *
 *   v0      <labkern::work::Disk>::seek::{closure#0}
 *           <labkern::work::Disk as labkern::work::BlockDev>::read::{closure#0}
 *   legacy  labkern::work::Disk::seek::{{closure}}
 *           <labkern::work::Disk as labkern::work::BlockDev>::read::{{closure}}
 */
function implOwner(demangled: string, inner: number): string | undefined {
  const parts = splitPath(stripGenerics(demangled));
  if (parts.length <= inner) return undefined;
  const owner = parts.slice(0, parts.length - inner).join('::');
  const wrapped = /^<([^<>]*)>$/.exec(owner);
  return wrapped === null || wrapped[1]?.includes(' as ') ? owner : wrapped[1];
}

/** Splits at `::` outside brackets of any kind. */
export function splitPath(path: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < path.length; i++) {
    const c = path[i];
    if (c === '<' || c === '(' || c === '[' || c === '{') depth++;
    else if ((c === '>' && path[i - 1] !== '-') || c === ')' || c === ']' || c === '}') depth--;
    else if (c === ':' && path[i + 1] === ':' && depth === 0) {
      parts.push(path.slice(start, i));
      start = i + 2;
      i++;
    }
  }
  parts.push(path.slice(start));
  return parts;
}
