import { timeText } from '../events/text-table.js';
import { byId, el, listOf, placeOf } from './dom.js';
import { isSlice, type Trace } from './trace.js';

/** Nanoseconds with spaces between thousands, and what that is. */
function timeOf(nanos: number): string {
  const digits = nanos.toLocaleString('en').replaceAll(',', ' ');
  return nanos < 1000 ? `${digits} ns` : `${digits} ns (${timeText(nanos)})`;
}

/** What a selection says; -1: there is none. `cause`: the wake of a poll, or the poll of a wake. */
export function showDetails(trace: Trace, slice: number, cause: string | undefined): void {
  const what = trace.whats[trace.what[slice] as number];
  if (what === undefined) {
    byId('details').replaceChildren(el('p', {}, 'Nothing is selected: click a slice, or press . in the timeline'));
    return;
  }
  const { kind, name, instance, file, line } = what;
  const pairs: (readonly [string, string])[] = [];
  const add = (title: string, value: string | undefined): void => {
    if (value) pairs.push([title, value]);
  };
  const laneOf = (number: number): string | undefined => trace.lanes[number - 1]?.name;
  const [start, end] = [trace.start[slice] as number, trace.end[slice] as number];
  const isOpen = trace.isOpen[slice] === 1;
  if (instance !== name) add('instance', instance);
  add(kind === 'wait' ? 'awaited at' : 'declared at', placeOf(file, line));
  add('at', timeOf(start));
  if (isSlice(kind)) {
    add('duration', isOpen ? 'not known: its end was not seen' : timeOf(end - start));
  }
  add('on', laneOf(trace.lane[slice] as number));
  add('task', laneOf(trace.task[slice] as number));
  const details = trace.details[trace.detail[slice] as number] ?? '';
  for (const each of details === '' ? [] : details.split('\n')) {
    const [title = '', ...value] = each.split('\t');
    add(title, value.join('\t'));
  }
  add(kind === 'wake' || name.startsWith('syscall::') ? 'caused' : 'caused by', cause);
  const title = kind === 'mark' || kind === 'end' ? name : kind === 'wait' ? `waits at ${name}` : `${kind} ${name}`;
  byId('details').replaceChildren(el('h2', {}, title === 'wake wake' ? 'wake' : title), listOf(pairs));
}
