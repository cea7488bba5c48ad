// A call tree for people to read and to grep, in the manner of `uftrace replay` and of ftrace's function_graph. One
// line for a begin, one line with the duration for its end; a single line for both if nothing happened in between.
//
//   #           TIME    DURATION  HART
//          12.300 us              [ 0]  labkern::exec::poll_task(t: 0x80412340) {
//          13.100 us      1.2 us  [ 0]    labkern::work::deep0(x: 3, y: 1) = 7
//          15.000 us      2.7 us  [ 0]  } /* labkern::exec::poll_task
//
// If threads are known by their stacks, `[ 0:12]` is thread 12 on hart 0, indented by its own calls.
//
// Written as events come; only the last begin waits for the next event.

import { startOf } from '../../base/file-bytes.js';
import { plural, visible } from '../../text/index.js';
import { chainText } from '../events/await-ways.js';
import type {
  AnyBegin,
  AnyEnd,
  HartInfo,
  PollEnd,
  ProbeFact,
  ThreadRef,
  TraceEvent,
  TraceFacts,
  TraceInfo,
} from '../events/events.js';
import type { Track } from '../events/open-calls.js';
import { argumentsText, engineTexts, hartWord, stateText, threadText } from '../events/text.js';
import { timeText } from '../events/text-table.js';
import { type AboutAll, CallLines, callName } from './call-lines.js';
import type { Format } from './format.js';
import { digitsOf, type TextPart } from './output/record-block.js';
import { blanks, DIGITS, headText, micros, putRight } from './text-lines.js';

export const tree: Format = {
  name: 'call tree',
  extensions: ['.txt'],
  about: 'text to read and to grep',
  use: 'a call tree, to read with a pager',
  isAppended: true,
  // `# kernel.elf, riscv64, guest clock riscv-time`, as `begin` writes it.
  recognizes: (head) => /^# .*, \w+, (?:guest )?clock [\w-]+\n/.test(startOf(head)),
  open: (file) => new TreeWriter(file),
};

/** Writes a readable call tree into `out`. */
export class TreeWriter extends CallLines {
  /** One object, because lines are many. */
  protected override readonly parts = { track: 0, text: 0, level: 0, number: 0 };
  readonly #threads = new Set<ThreadRef>();

  override begin(info: TraceInfo): void {
    this.write(`# ${headText(info)}`);
    for (const hart of info.harts) this.hart(hart);
    this.write(`#${'TIME'.padStart(15)}${'DURATION'.padStart(12)}  ${hartWord(info).toUpperCase()}`);
  }

  override hart(hart: HartInfo): void {
    this.write(`# [${String(hart.number).padStart(2)}] is ${hart.name}`);
  }

  override event(event: TraceEvent): void {
    if (event.type !== 'sample') super.event(event);
  }

  override end(facts?: TraceFacts): void {
    this.openPending();
    if (facts) for (const line of probeLines(facts)) this.write(`# ${line}`);
    this.out.close();
  }

  protected override comment(event: AboutAll): string {
    const text = super.comment(event);
    if (event.type === 'gap') return `${text}: ${timeText(event.to - event.from)}`;
    return event.type === 'reset' ? `${text} at ${micros(event.time)} us` : text;
  }

  protected level(begin: AnyBegin): number {
    const { thread } = begin;
    if (thread && !this.#threads.has(thread)) {
      this.#threads.add(thread);
      this.write(`# [..:${thread.key}] is on ${threadText(thread)}`);
    }
    const around = this.open.of(begin.around);
    return around ? around.indent + 1 : this.open.on(begin).length;
  }

  protected called(line: TextPart[], begin: AnyBegin): void {
    line.push(callName(begin));
    if (begin.type === 'call-begin') line.push('(', visible(argumentsText(begin.arguments)), ')');
    else if (begin.state !== undefined) line.push(' from ', visible(stateText(begin.state)));
  }

  protected whole(end: AnyEnd): string {
    if (end.type === 'poll-end') return this.#resultText(end);
    if (end.type !== 'call-end') return ' = lost';
    return end.result === undefined ? '' : ` = ${end.result}`;
  }

  protected closed(line: TextPart[], begin: AnyBegin, end: AnyEnd): void {
    line.push('}', visible(this.whole(end)), ' /* ', callName(begin), ' */');
  }

  protected orphan(end: AnyEnd): void {
    const line = this.start(end, end.time, undefined, this.open.on(end).length);
    line.push(callName(end), visible(this.whole(end)));
    this.stop(line);
  }

  #resultText(end: PollEnd): string {
    const chain = chainText(end);
    if (chain !== '') return ` = ${end.result}, awaits ${chain}`;
    return end.result === 'pending' && end.state ? ` = pending, ${stateText(end.state)}` : ` = ${end.result}`;
  }

  protected start({ hart, thread }: Track, time: number, duration: number | undefined, level: number): TextPart[] {
    const rest = time % 1000;
    const micros = (time - rest) / 1000;
    const line: TextPart[] = [];
    putRight(line, micros, MICROS);
    const spent = duration === undefined ? '' : timeText(duration);
    line.push(
      '.',
      DIGITS[rest] as string,
      ' us',
      blanks(SPENT - spent.length),
      spent,
      '  [',
      hart < 10 ? ' ' : '',
      hart,
    );
    if (thread !== undefined) line.push(':', thread.key);
    const indented = Math.min(level, mostIndented);
    line.push(']  ', blanks(2 * indented));
    const { parts } = this;
    parts.track = Math.max(MICROS, digitsOf(micros)) + Math.max(SPENT, spent.length) + 9;
    const key = thread === undefined ? 0 : 1 + digitsOf(thread.key);
    parts.text = parts.track + 4 + Math.max(2, digitsOf(hart)) + key + 2 * indented;
    parts.level = indented;
    parts.number = thread?.key ?? hart;
    return line;
  }
}

/** Characters of whole microseconds, and of a duration. */
const MICROS = 9;
const SPENT = 12;
/** Deeper calls are indented no further: of a recursion the file would be as long as the square of its depth. */
const mostIndented = 200;

/** Those that everybody expects are a number. The others have a line each. */
function probeLines(facts: TraceFacts): string[] {
  const isUsual = ({ engine, why, extra }: ProbeFact): boolean =>
    engine === 'target' && why === undefined && extra === undefined;
  const usual = facts.probes.filter(isUsual).length;
  const others = engineTexts({ ...facts, probes: facts.probes.filter((probe) => !isUsual(probe)) });
  const lines = others.map(([probe, engine]) => `${probe}: ${engine}`);
  return usual > 0 ? [`${plural(usual, 'probe')} without stops`, ...lines] : lines;
}
