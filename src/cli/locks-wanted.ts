// What harts want that stand in the middle of taking a lock.
import type { WantedLock } from '../api/index.js';
import { hex } from '../base/addr.js';
import type { CodePlace } from '../target/stacks/index.js';
import { shownPlace } from '../text/index.js';

export function wantedLines(wanted: readonly WantedLock[]): readonly string[] {
  if (wanted.length === 0) return [];
  const mayBeDropped = wanted.some(({ guards }) => guards.length > 0)
    ? 'a guard may have been dropped before its scope ends; '
    : '';
  const notSaid = `${mayBeDropped}who holds a lock, and since when, memory does not say: rsptrace run -p 'lock:**' does`;
  return [...wanted.map(wantedText), notSaid];
}

/**
 * `hart 0 is taking app::CONSOLE in app::tick at src/main.rs:7, whose guard hart 1 has in app::print at src/print.rs:9`,
 * or `, and has interrupted app::print at src/print.rs:9`.
 */
function wantedText({ hart, inside, lock, by, interrupted, guards }: WantedLock): string {
  const place = ({ function: name, file, line }: NonNullable<CodePlace['own']>): string =>
    `${name}${file === undefined ? '' : ` at ${shownPlace(file, line)}`}`;
  const held = guards.map((guard) => {
    const who = guard.hart === hart ? 'it has itself' : `hart ${guard.hart} has`;
    return `whose guard ${who} ${guard.by ? `in ${place(guard.by)}` : ''}`.trimEnd();
  });
  const what = lock ?? `a lock in ${inside} (which one, its debug info does not say)`;
  const before = interrupted ? `, and has interrupted ${place(interrupted)}` : '';
  return [`hart ${hart} is taking ${what}${by ? ` in ${place(by)}` : ''}${before}`, ...held].join(', ');
}

export function wantedJson({ hart, inside, lock, address, by, interrupted, guards }: WantedLock): object {
  const place = (own: CodePlace['own']): object | null =>
    own ? { function: own.function ?? null, file: own.file ?? null, line: own.line ?? null } : null;
  return {
    ...{ hart, inside, lock: lock ?? null, address: address === undefined ? null : hex(address) },
    ...{ by: place(by), interrupted: place(interrupted) },
    guards: guards.map((guard) => ({ hart: guard.hart, variable: guard.name, by: place(guard.by) })),
  };
}
