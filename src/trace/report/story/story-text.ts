import { clipEnd, plural, shownPlaces, visible } from '../../../text/index.js';
import { type TableOptions, timeText } from '../../events/text-table.js';
import type { StoryKind, StoryNode } from './node.js';
import type { Story } from './story.js';

/** Where the time of a story's subject went, in nanoseconds. */
interface StoryTimes {
  /** Undefined if it has no end in the trace. */
  readonly total: number | undefined;
  readonly waits: number;
  readonly waiting: number;
  /** Of `waiting`, from who ended a wait to where it went on; undefined where nothing says who did. */
  readonly runnable: number | undefined;
  readonly interrupts: number;
  readonly interrupted: number;
  readonly locks: number;
  /** Inside functions that take a lock. */
  readonly locking: number;
}

function storyTimes(root: StoryNode): StoryTimes {
  const waits = [...outermost(root, 'wait')];
  const irqs = [...outermost(root, 'irq')];
  const locks = [...outermost(root, 'lock')];
  const woken = waits.filter(({ wait, took }) => wait?.woken !== undefined && took !== undefined);
  const runnable = woken.map(({ began, took = 0, wait }) => began + took - (wait?.woken ?? 0));
  return {
    total: root.took,
    waits: waits.length,
    waiting: sum(waits.map(({ took = 0 }) => took)),
    runnable: woken.length === 0 ? undefined : sum(runnable),
    interrupts: irqs.length,
    interrupted: sum(irqs.map(onHart)),
    locks: locks.length,
    locking: sum(locks.map(onHart)),
  };
}

/** Of a thread: who ended one of its waits is not known. */
export function hasUnknownWakes({ followed }: Story): boolean {
  const of = ({ children, wait, name, took }: StoryNode): boolean =>
    (wait !== undefined && wait.woken === undefined && took !== undefined && name !== 'preempted') || children.some(of);
  return followed !== undefined && of(followed.root);
}

/** Those that stand in no other one, and in no wait: there others run. */
function* outermost(node: StoryNode, kind: StoryKind): Generator<StoryNode> {
  for (const child of node.children) {
    if (child.kind === kind) yield child;
    else if (child.kind !== 'wait') yield* outermost(child, kind);
  }
}

function onHart(node: StoryNode): number {
  return (node.took ?? 0) - sum([...outermost(node, 'wait')].map(({ took = 0 }) => took));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all + each, 0);
}

/** `most`: lines of the tree. `unit`: what runs code, a hart of a machine or a thread of a process. */
export function storyText(
  { followed, leftOut }: Story,
  options: Pick<TableOptions, 'width'> & { readonly unit: 'hart' | 'thread' },
  most: number,
): string {
  if (!followed) return '';
  const { root } = followed;
  const lines: string[] = [];
  let more = leftOut;
  const add = (node: StoryNode, level: number): void => {
    if (lines.length < most) lines.push(lineOf(node, root, level, options));
    else more++;
    for (const child of node.children) add(child, level + 1);
  };
  add(root, 0);
  const rest = more > 0 ? `${plural(more, 'line')} more${leftOut > 0 ? '' : ': --full shows them'}\n` : '';
  return `${head(root, options.unit)}\n\n       at       took  ${options.unit}\n${lines.join('')}${rest}`;
}

function head(root: StoryNode, unit: string): string {
  const { total, waits, waiting, runnable, interrupts, interrupted, locks, locking } = storyTimes(root);
  const ready = runnable === undefined ? '' : `, of that ${timeText(runnable)} woken`;
  const parts = [
    total === undefined
      ? 'it has no end in the trace'
      : `${timeText(total - waiting)} of ${timeText(total)} on a ${unit}`,
    waits > 0 && `${timeText(waiting)} in ${plural(waits, 'wait')}${ready}`,
    interrupts > 0 && `${plural(interrupts, 'interrupt')} of ${timeText(interrupted)}`,
    locks > 0 && `${timeText(locking)} for ${plural(locks, 'lock')}`,
  ];
  return `${visible(root.name)}, ${timeText(root.began)} after the begin: ${parts.filter(Boolean).join('; ')}`;
}

function lineOf(
  node: StoryNode,
  root: StoryNode,
  level: number,
  { width, unit }: Parameters<typeof storyText>[1],
): string {
  const { kind, name, detail, hart, began, took, result } = node;
  const at = timeText(began - root.began).padStart(9);
  const time = (took === undefined ? '' : timeText(took)).padStart(9);
  const given = detail === undefined ? '' : kind === 'lock' || kind === 'poll' ? ` ${detail}` : `(${detail})`;
  const what = `${name}${given}${result === undefined ? '' : ` = ${result}`}${waitText(node, unit)}`;
  return `${clipEnd(`${at}  ${time}  ${String(hart).padStart(unit.length)}  ${'  '.repeat(level)}${shownPlaces(visible(what))}`, width)}\n`;
}

function waitText({ wait, began, hart }: StoryNode, unit: string): string {
  if (!wait) return '';
  const { next, wokenBy, woken, back } = wait;
  const parts = [
    next !== undefined && `${unit} ${hart} runs ${next}`,
    wokenBy !== undefined && `woken by ${wokenBy}${woken === undefined ? '' : ` after ${timeText(woken - began)}`}`,
    back !== undefined && back !== hart && `goes on on ${unit} ${back}`,
  ];
  const text = parts.filter(Boolean).join('; ');
  return text === '' ? '' : `: ${text}`;
}

/** As `--json` has it. */
export function storyJson({ followed, leftOut }: Story): object {
  if (!followed) return {};
  const { root, subject, carrier, others } = followed;
  const { total, waiting, runnable, ...times } = storyTimes(root);
  return {
    number: subject.number,
    goes_with: carrier.kind,
    total_ns: total ?? null,
    on_hart_ns: total === undefined ? null : total - waiting,
    waits: times.waits,
    waiting_ns: waiting,
    runnable_ns: runnable ?? null,
    interrupts: times.interrupts,
    interrupted_ns: times.interrupted,
    locks: times.locks,
    locking_ns: times.locking,
    others_on_its_hart: others,
    left_out: leftOut,
    tree: nodeJson(root),
  };
}

function nodeJson({ kind, name, detail, hart, began, took, result, wait, children }: StoryNode): object {
  return {
    ...{ kind, name, detail: detail ?? null, hart, at_ns: began, took_ns: took ?? null, result: result ?? null },
    ...(wait && {
      next: wait.next ?? null,
      woken_by: wait.wokenBy ?? null,
      woken_ns: wait.woken ?? null,
      back_on: wait.back ?? null,
    }),
    children: children.map(nodeJson),
  };
}
