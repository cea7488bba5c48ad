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

import { startOf } from '../../base/file-head.js';
import { plural } from '../../base/plural.js';
import { visible } from '../../base/visible.js';
import type {
  AnyBegin,
  AnyEnd,
  CallBegin,
  HartInfo,
  PollBegin,
  PollEnd,
  ProbeFact,
  ThreadRef,
  TraceEvent,
  TraceFacts,
  TraceInfo,
  TraceSink,
} from '../events/events.js';
import { hartWord } from '../events/hart-labels.js';
import { OpenCalls, type Track } from '../events/open-calls.js';
import {
  accessText,
  argumentsText,
  ChainTexts,
  cancelText,
  doerText,
  engineTexts,
  gapText,
  placeHitText,
  resetText,
  stateText,
  stuckText,
  threadText,
  wakeText,
} from '../events/text.js';
import { timeText } from '../events/text-table.js';
import { callName } from './call-names.js';
import type { Format } from './format.js';
import { encoded, type TextBytes } from './output/text-bytes.js';

/** The call tree. */
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

interface Line {
  readonly begin: AnyBegin;
  /** What is open around it on its hart, or in its thread. */
  readonly indent: number;
}

/** Where a call tree goes: a file, a terminal. */
export interface Lines {
  textRecord(line: string): void;
  /** A line, with its break, that is composed in what this returns, up to {@link endText}. */
  startText(): TextBytes;
  endText(): void;
  flush(): void;
  close(): void;
}

/** Writes a readable call tree into `out`. */
export class TreeWriter implements TraceSink {
  readonly #out: Lines;
  readonly #chains = new ChainTexts();
  readonly #open = new OpenCalls<Line>();
  /** It has begun, and nothing has happened since. */
  #pending: Line | undefined;
  readonly #threads = new Set<ThreadRef>();

  constructor(out: Lines) {
    this.#out = out;
  }

  begin(info: TraceInfo): void {
    const { program, arch, clock, harts } = info;
    const clockText = clock.guest ? `guest clock ${clock.name}` : `clock ${clock.name}`;
    this.#write(`# ${program}, ${arch}, ${clockText}`);
    for (const hart of harts) this.hart(hart);
    this.#write(`#${'TIME'.padStart(15)}${'DURATION'.padStart(12)}  ${hartWord(info).toUpperCase()}`);
  }

  hart(hart: HartInfo): void {
    this.#write(`# [${String(hart.number).padStart(2)}] is ${hart.name}`);
  }

  event(event: TraceEvent): void {
    switch (event.type) {
      case 'call-begin':
      case 'poll-begin':
        this.#begin(event);
        break;
      case 'call-end':
        this.#end(event, event.result === undefined ? '' : ` = ${event.result}`);
        break;
      case 'poll-end':
        this.#end(event, this.#resultText(event));
        break;
      case 'call-lost':
      case 'poll-lost':
        this.#end(event, ' = lost');
        break;
      case 'derived-poll':
        this.#note(event, `poll ${event.future.future} = ${event.result} (derived)`);
        break;
      case 'state':
        this.#note(event, `${event.future.future}: ${event.to === undefined ? 'unknown state' : stateText(event.to)}`);
        break;
      case 'watch':
        this.#note(event, `${event.watch.name}: ${accessText(event)}, by ${doerText(event)}`);
        break;
      case 'place':
        this.#note(event, placeHitText(event));
        break;
      case 'wake':
        this.#note(event, wakeText(event));
        break;
      case 'cancelled':
        this.#note(event, cancelText(event));
        break;
      case 'stuck':
        this.#openPending();
        this.#write(`# ${stuckText(event)}`);
        break;
      case 'gap':
        this.#openPending();
        this.#write(`# ${gapText(event)}: ${timeText(event.to - event.from)}`);
        break;
      case 'reset':
        this.#openPending();
        this.#write(`# ${resetText} at ${micros(event.time)} us`);
        break;
      case 'console':
        this.#openPending();
        this.#write(`# console: ${event.text}`);
        break;
    }
  }

  flush(): void {
    this.#out.flush();
  }

  end(facts?: TraceFacts): void {
    this.#openPending();
    if (facts) for (const line of probeLines(facts)) this.#write(`# ${line}`);
    this.#out.close();
  }

  #begin(begin: CallBegin | PollBegin): void {
    this.#openPending();
    const { thread } = begin;
    if (thread && !this.#threads.has(thread)) {
      this.#threads.add(thread);
      this.#write(`# [..:${thread.key}] is on ${threadText(thread)}`);
    }
    const around = this.#open.of(begin.around);
    const line = { begin, indent: around ? around.indent + 1 : this.#open.on(begin).length };
    this.#open.begin(line);
    this.#pending = line;
  }

  #end(event: AnyEnd, result: string): void {
    const line = this.#open.end(event);
    if (line === undefined) {
      this.#openPending();
      const text = this.#start(event, event.time, undefined, this.#open.on(event).length);
      text.piece(callName(event));
      this.#stop(text, result);
    } else this.#close(line, event.time, result);
  }

  /** A call's last line; its only one when it is still pending. */
  #close(line: Line, time: number, result: string): void {
    const { begin, indent } = line;
    const duration = time - begin.time;
    if (this.#pending === line) {
      this.#pending = undefined;
      const text = this.#start(begin, begin.time, duration, indent);
      putCall(text, begin);
      this.#stop(text, result);
      return;
    }
    this.#openPending();
    const text = this.#start(begin, time, duration, indent);
    text.byte(CLOSE);
    text.visible(result);
    text.piece(COMMENT);
    text.piece(callName(begin));
    this.#stop(text, ' */');
  }

  #openPending(): void {
    const line = this.#pending;
    if (line === undefined) return;
    this.#pending = undefined;
    const text = this.#start(line.begin, line.begin.time, undefined, line.indent);
    putCall(text, line.begin);
    this.#stop(text, ' {');
  }

  #note(event: Track & { readonly time: number }, text: string): void {
    this.#openPending();
    this.#stop(this.#start(event, event.time, undefined, this.#open.on(event).length), `/* ${text} */`);
  }

  #resultText(end: PollEnd): string {
    const chain = this.#chains.text(end.chain);
    if (chain !== '') return ` = ${end.result}, awaits ${chain}`;
    return end.result === 'pending' && end.state ? ` = pending, ${stateText(end.state)}` : ` = ${end.result}`;
  }

  /** What happened is to follow. */
  #start({ hart, thread }: Track, time: number, duration: number | undefined, indent: number): TextBytes {
    const text = this.#out.startText();
    text.micros(time, MICROS);
    text.piece(UNIT);
    const spent = duration === undefined ? '' : timeText(duration);
    text.blanks(Math.max(0, SPENT - spent.length));
    text.text(spent);
    text.piece(TRACK);
    if (hart < 10) text.byte(BLANK);
    text.number(hart);
    if (thread !== undefined) {
      text.byte(COLON);
      text.number(thread.key);
    }
    text.piece(TRACK_END);
    text.blanks(2 * indent);
    return text;
  }

  #stop(text: TextBytes, rest: string): void {
    text.visible(rest);
    text.byte(NEWLINE);
    this.#out.endText();
  }

  #write(line: string): void {
    this.#out.textRecord(`${visible(line)}\n`);
  }
}

/** Characters of a time, and of a duration. */
const MICROS = 13;
const SPENT = 12;
const UNIT = encoded(' us');
const TRACK = encoded('  [');
const TRACK_END = encoded(']  ');
const COMMENT = encoded(' /* ');
const FROM = encoded(' from ');
const BLANK = 0x20;
const COLON = 0x3a;
const CLOSE = 0x7d;
const OPEN_ARGUMENTS = 0x28;
const CLOSE_ARGUMENTS = 0x29;
const NEWLINE = 0x0a;

function putCall(text: TextBytes, begin: AnyBegin): void {
  text.piece(callName(begin));
  if (begin.type === 'poll-begin') {
    if (begin.state === undefined) return;
    text.piece(FROM);
    text.visible(stateText(begin.state));
    return;
  }
  text.byte(OPEN_ARGUMENTS);
  if (begin.arguments.length > 0) text.visible(argumentsText(begin.arguments));
  text.byte(CLOSE_ARGUMENTS);
}

function micros(nanos: number): string {
  return `${Math.floor(nanos / 1000)}.${String(nanos % 1000).padStart(3, '0')}`;
}

/** Those that everybody expects are a number. The others have a line each. */
function probeLines(facts: TraceFacts): string[] {
  const isUsual = ({ engine, why, extra }: ProbeFact): boolean =>
    engine === 'target' && why === undefined && extra === undefined;
  const usual = facts.probes.filter(isUsual).length;
  const others = engineTexts({ ...facts, probes: facts.probes.filter((probe) => !isUsual(probe)) });
  const lines = others.map(([probe, engine]) => `${probe}: ${engine}`);
  return usual > 0 ? [`${plural(usual, 'probe')} without stops`, ...lines] : lines;
}
