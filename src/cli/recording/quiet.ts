// What is said of a time without events.

import { hex } from '../../base/addr.js';
import { jsonFacts } from '../../base/json-facts.js';
import type { ForeignHits, Quiet, QuietHart } from '../../record/index.js';
import { plural, shownPlace } from '../../text/index.js';
import { type OpenLockWait, timeText } from '../../trace/index.js';
import { sentenceLines } from '../failure.js';

/** For stderr: nothing where nothing is known that the user does not see. */
export function quietText(quiet: Quiet, elf: string): string {
  const { ms, hits, codeAbsent, foreign, harts, more } = quiet;
  const why = codeAbsent
    ? `the target had nothing of ${elf} in its memory when it began: does it run that, or is its loader not done?`
    : `the target has ${elf} in its memory, and has not come to what is probed`;
  const areIdle = more === 0 && harts.length > 0 && harts.every(({ state }) => state === 'idle');
  const places = harts.map((hart) => hartText(hart, quiet)).join('; ');
  const where = `${areIdle ? 'the machine is idle: ' : ''}${places}${more > 0 ? `; and ${more} more` : ''}`;
  const parts = [
    ...(hits === 0 ? [why] : []),
    ...(harts.length > 0 ? [where] : []),
    ...(foreign
      ? [`other code came to the places of probes ${plural(foreign.hits, 'time')}, each a stop: ${mostText(foreign)}`]
      : []),
  ];
  if (parts.length === 0) return '';
  const what = hits === 0 ? 'no probe was hit in' : 'no event for';
  return sentenceLines([`rsptrace: ${what} ${ms / 1000} s: ${parts.join('; ')}`], process.stderr);
}

/** Where other code came to, and how to spare that: `2600 times to 0x201000, that of shell::main: ...`. */
export function mostText({ most: { hits, address, probes } }: ForeignHits): string {
  const [probe] = probes;
  const times = plural(hits, 'time');
  return probe === undefined
    ? `${times} to ${hex(address)}, where a call was to return`
    : `${times} to ${hex(address)}, that of ${probe}: leave that probe out (-p '!fn:NAME')`;
}

function hartText(hart: QuietHart, { isProcess }: Quiet): string {
  const { number, name, pc } = hart;
  const who = isProcess ? `thread ${number} (${name})` : `hart ${number}`;
  switch (hart.state) {
    case 'firmware':
      return `${who} is in firmware at ${pc}`;
    case 'other-code':
      return `${who} runs another program, at ${pc}`;
    case 'idle':
      return `${who} waits for an interrupt${placeText(hart)}`;
    case 'waits':
      return `${who} waits${placeText(hart)}`;
    case 'runs':
      if (hart.lock) return `${who} ${lockText(hart.lock)}`;
      return isProcess ? `${who} runs` : `${who} runs${placeText(hart)}`;
  }
}

/** `spins for CONSOLE in app::tick at src/main.rs:7 since 4.2 s of the trace, held by itself since 4.1 s, ..`. */
function lockText({ lock, hart, by, since_ns: since, ...held }: OpenLockWait): string {
  const waits = `spins for ${lock} in ${by} since ${timeText(since)} of the trace`;
  const { held_by: holder, held_since_ns: from, held_on: on } = held;
  if (holder === null || from === null) return `${waits}, which nobody is seen to hold`;
  return `${waits}, held by ${on === hart ? 'itself' : `hart ${on}`} since ${timeText(from)}, taken by ${holder}`;
}

/** ` in spin::Mutex::lock, from app::main (src/main.rs:12)`. */
function placeText({ inside, own }: QuietHart): string {
  if (own === undefined) return inside === undefined ? '' : ` in ${inside}`;
  const place = `${own.function} (${shownPlace(own.file, own.line)})`;
  return inside === undefined ? ` in ${place}` : ` in ${inside}, from ${place}`;
}

export function quietJson({ ms, hits, foreign, harts, more }: Quiet): object {
  const names = ['number', 'name', 'state', 'inside', 'own', 'pc', 'lock'] as const;
  return { ms, hits, foreign_hits: foreign?.hits ?? 0, harts: harts.map((hart) => jsonFacts(hart, [...names])), more };
}
