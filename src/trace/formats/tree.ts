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
import { visible } from '../../base/visible.js';
import type {
  AnyBegin,
  AnyEnd,
  CallBegin,
  HartInfo,
  PollBegin,
  PollEnd,
  ThreadRef,
  TraceEvent,
  TraceFacts,
  TraceInfo,
  TraceSink,
} from '../events.js';
import { OpenCalls, type Track } from '../open-calls.js';
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
  threadText,
  wakeText,
} from '../text.js';
import { timeText } from '../text-table.js';
import type { Format } from './format.js';

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

  begin({ program, arch, clock, harts }: TraceInfo): void {
    const clockText = clock.guest ? `guest clock ${clock.name}` : `clock ${clock.name}`;
    this.#write(`# ${program}, ${arch}, ${clockText}`);
    for (const hart of harts) this.hart(hart);
    this.#write(`#${'TIME'.padStart(15)}${'DURATION'.padStart(12)}  HART`);
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
    for (const [probe, engine] of facts ? engineTexts(facts) : []) this.#write(`# ${probe}: ${engine}`);
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
      this.#line(event, event.time, undefined, this.#open.on(event).length, `${nameOf(event)}${result}`);
    } else this.#close(line, event.time, result);
  }

  /** A call's last line; its only one when it is still pending. */
  #close(line: Line, time: number, result: string): void {
    const { begin, indent } = line;
    const duration = time - begin.time;
    if (this.#pending === line) {
      this.#pending = undefined;
      this.#line(begin, begin.time, duration, indent, `${callText(begin)}${result}`);
      return;
    }
    this.#openPending();
    this.#line(begin, time, duration, indent, `}${result} /* ${nameOf(begin)} */`);
  }

  #openPending(): void {
    const line = this.#pending;
    if (line === undefined) return;
    this.#pending = undefined;
    this.#line(line.begin, line.begin.time, undefined, line.indent, `${callText(line.begin)} {`);
  }

  #note(event: Track & { readonly time: number }, text: string): void {
    this.#openPending();
    this.#line(event, event.time, undefined, this.#open.on(event).length, `/* ${text} */`);
  }

  #resultText(end: PollEnd): string {
    const chain = this.#chains.text(end.chain);
    if (chain !== '') return ` = ${end.result}, awaits ${chain}`;
    return end.result === 'pending' && end.state ? ` = pending, ${stateText(end.state)}` : ` = ${end.result}`;
  }

  #line({ hart, thread }: Track, time: number, duration: number | undefined, indent: number, text: string): void {
    const spent = duration === undefined ? '' : timeText(duration);
    const left = `${micros(time).padStart(13)} us${spent.padStart(12)}`;
    const track = `${String(hart).padStart(2)}${thread ? `:${thread.key}` : ''}`;
    this.#write(`${left}  [${track}]  ${'  '.repeat(indent)}${text}`);
  }

  #write(line: string): void {
    this.#out.textRecord(`${visible(line)}\n`);
  }
}

function callText(begin: AnyBegin): string {
  if (begin.type === 'poll-begin') {
    return begin.state === undefined ? nameOf(begin) : `${nameOf(begin)} from ${stateText(begin.state)}`;
  }
  return `${nameOf(begin)}(${argumentsText(begin.arguments)})`;
}

function nameOf(event: AnyBegin | AnyEnd): string {
  return 'function' in event ? event.function.name : `poll ${event.future.future}`;
}

function micros(nanos: number): string {
  return `${Math.floor(nanos / 1000)}.${String(nanos % 1000).padStart(3, '0')}`;
}
