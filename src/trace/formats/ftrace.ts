// The text of ftrace's function_graph tracer (docs.kernel.org/trace/ftrace.html; kernel/trace/trace_functions_graph.c),
// as `trace` has it with the options funcgraph-abstime and funcgraph-tail:
//
//   # tracer: function_graph
//   #
//   #     TIME        CPU  DURATION                  FUNCTION CALLS
//   #      |          |     |   |                     |   |   |   |
//       0.012300 |   0)               |  exec::poll_task() {
//       0.013100 |   0)   1.200 us    |    work::deep0();
//       0.015000 |   0)   2.700 us    |  } /* exec::poll_task */
//
// The mark before a duration: `+` above 10 us, `!` above 100 us, `#` above 1 ms, `*` above 10 ms, `@` above 100 ms, `$`
// above 1 s. Where a hart goes on with another thread, three lines say so. What is neither a call nor a poll is a
// comment. Written as events come; only the last begin waits for the next event.
import { startOf } from '../../base/file-head.js';
import { visible } from '../../base/visible.js';
import type { AnyBegin, AnyEnd, HartInfo, TraceEvent, TraceInfo, TraceSink } from '../events/events.js';
import { OpenCalls, type Track } from '../events/open-calls.js';
import {
  accessText,
  cancelText,
  doerText,
  gapText,
  placeHitText,
  resetText,
  stateText,
  stuckText,
  wakeText,
} from '../events/text.js';
import { callName } from './call-names.js';
import type { Format } from './format.js';
import { encoded, type TextBytes } from './output/text-bytes.js';
import type { Lines } from './tree.js';

const HEAD = '# tracer: function_graph\n';

/** ftrace's function_graph. */
export const ftrace: Format = {
  name: 'ftrace function_graph',
  extensions: ['.ftrace'],
  about: "text as Linux' function_graph tracer prints it, for scripts that read that",
  use: 'read it as /sys/kernel/tracing/trace',
  isAppended: true,
  recognizes: (head) => startOf(head).startsWith(HEAD),
  open: (file) => new FunctionGraph(file),
};

interface Line {
  readonly begin: AnyBegin;
  readonly indent: number;
}

/** Writes function_graph's text. */
export class FunctionGraph implements TraceSink {
  readonly #out: Lines;
  readonly #open = new OpenCalls<Line>();
  /** It has begun, and nothing has happened since. */
  #pending: Line | undefined;
  /** By hart, the thread whose calls came last. */
  readonly #threads: (number | undefined)[] = [];

  constructor(out: Lines) {
    this.#out = out;
  }

  begin({ program, arch, clock, harts }: TraceInfo): void {
    const about = `# ${program}, ${arch}, ${clock.guest ? 'guest clock' : 'clock'} ${clock.name}`;
    this.#out.textRecord(`${HEAD}#\n${visible(about)}\n`);
    for (const hart of harts) this.hart(hart);
    this.#out.textRecord('#     TIME        CPU  DURATION                  FUNCTION CALLS\n');
    this.#out.textRecord('#      |          |     |   |                     |   |   |   |\n');
  }

  hart({ number, name }: HartInfo): void {
    this.#out.textRecord(`${visible(`# CPU ${number} is ${name}`)}\n`);
  }

  event(event: TraceEvent): void {
    switch (event.type) {
      case 'call-begin':
      case 'poll-begin':
        this.#begin(event);
        break;
      case 'call-end':
      case 'call-lost':
      case 'poll-end':
      case 'poll-lost':
        this.#end(event);
        break;
      case 'gap':
        this.#openPending();
        this.#out.textRecord(`# ${gapText(event)}\n`);
        break;
      case 'reset':
        this.#openPending();
        this.#out.textRecord(`# ${resetText}\n`);
        break;
      case 'console':
        this.#openPending();
        this.#out.textRecord(`${visible(`# console: ${event.text}`)}\n`);
        break;
      case 'stuck':
        this.#openPending();
        this.#out.textRecord(`${visible(`# ${stuckText(event)}`)}\n`);
        break;
      default:
        this.#openPending();
        this.#stop(this.#start(event, event.time, undefined, this.#open.on(event).length), `/* ${noteText(event)} */`);
    }
  }

  /** An interrupt came, or is over: as `print_graph_irq` marks it. */
  interrupt({ hart }: Track, time: number, isOver: boolean): void {
    this.#openPending();
    const mark = isOver ? '<========== |' : '==========> |';
    const text = this.#out.startText();
    putPlace(text, time, hart);
    this.#stop(text, `  ${mark}`);
  }

  flush(): void {
    this.#out.flush();
  }

  end(): void {
    this.#openPending();
    this.#out.close();
  }

  #begin(begin: AnyBegin): void {
    this.#openPending();
    const line = { begin, indent: this.#open.on(begin).length };
    this.#open.begin(line);
    this.#pending = line;
  }

  #end(event: AnyEnd): void {
    const line = this.#open.end(event);
    const isLost = event.type === 'call-lost' || event.type === 'poll-lost';
    if (line === undefined) {
      this.#openPending();
      this.#close(this.#start(event, event.time, undefined, 0), event, CLOSE);
      return;
    }
    const { begin, indent } = line;
    const result = event.type === 'call-end' ? returned(event.result) : '';
    const duration = isLost ? undefined : event.time - begin.time;
    if (this.#pending === line) {
      this.#pending = undefined;
      const text = this.#start(begin, begin.time, duration, indent);
      called(text, begin);
      this.#stop(text, isLost ? '; /* lost */' : result === '' ? ';' : `; /* ${result} */`);
      return;
    }
    this.#openPending();
    const close = isLost ? CLOSE_LOST : result === '' ? CLOSE : ` ${result}${CLOSE}`;
    this.#close(this.#start(begin, event.time, duration, indent), begin, close);
  }

  #close(text: TextBytes, event: AnyBegin | AnyEnd, end: string): void {
    text.piece(OPEN_CLOSE);
    text.piece(callName(event));
    this.#stop(text, end);
  }

  #openPending(): void {
    const line = this.#pending;
    if (line === undefined) return;
    this.#pending = undefined;
    const { begin, indent } = line;
    const text = this.#start(begin, begin.time, undefined, indent);
    called(text, begin);
    this.#stop(text, ' {');
  }

  /** What happened is to follow. */
  #start({ hart, thread }: Track, time: number, duration: number | undefined, indent: number): TextBytes {
    if (thread !== undefined) this.#switch(hart, thread.key);
    const text = this.#out.startText();
    putPlace(text, time, hart);
    if (duration === undefined) text.blanks(DURATION);
    else putDuration(text, duration);
    text.piece(COLUMN);
    text.blanks(2 * indent);
    return text;
  }

  #stop(text: TextBytes, rest: string): void {
    text.visible(rest);
    text.byte(NEWLINE);
    this.#out.endText();
  }

  #switch(hart: number, thread: number): void {
    const before = this.#threads[hart];
    if (before === thread) return;
    this.#threads[hart] = thread;
    if (before === undefined) return;
    const rule = ' ------------------------------------------\n';
    const names = [before, thread].map((key) => `stack-${key}`.padStart(15));
    this.#out.textRecord(`${rule} ${String(hart).padStart(3)}) ${names[0]} => ${names[1]}\n${rule}\n`);
  }
}

type Note = Exclude<TraceEvent, AnyBegin | AnyEnd | { readonly type: 'gap' | 'reset' | 'console' | 'stuck' }>;

function noteText(event: Note): string {
  switch (event.type) {
    case 'derived-poll':
      return `poll ${event.future.future} = ${event.result} (derived)`;
    case 'state':
      return `${event.future.future}: ${event.to === undefined ? 'unknown state' : stateText(event.to)}`;
    case 'watch':
      return `${event.watch.name}: ${accessText(event)}, by ${doerText(event)}`;
    case 'place':
      return placeHitText(event);
    case 'wake':
      return wakeText(event);
    case 'cancelled':
      return cancelText(event);
    case 'sample':
      return `sample: ${event.stack.map(({ name }) => name).join(' < ')}`;
  }
}

const CLOSE = ' */';
const CLOSE_LOST = ', lost */';
/** Characters of a duration, with its mark. */
const DURATION = 15;
const HART = 3;
const SECONDS = 5;
const OPEN_CLOSE = encoded('} /* ');
const NO_ARGUMENTS = encoded('()');
const COLUMN = encoded('|  ');
const BAR = encoded(' | ');
const END_HART = encoded(') ');
const UNIT = encoded(' us');
/** Of a duration, before and behind its point. */
const DIGITS = 7;
const BLANK = 0x20;
const POINT = 0x2e;
const NEWLINE = 0x0a;

/** With arguments, as the kernel's option funcgraph-args writes them. */
function called(text: TextBytes, begin: AnyBegin): void {
  text.piece(callName(begin));
  const values = begin.type === 'call-begin' ? begin.arguments : [];
  if (values.length === 0) text.piece(NO_ARGUMENTS);
  else text.visible(`(${values.map(({ name, value }) => `${name}=${value}`).join(', ')})`);
}

/** As funcgraph-retval writes it. A text may have what ends a comment. */
function returned(result: string | undefined): string {
  return result === undefined ? '' : `ret=${result.replaceAll('*/', '* /')}`;
}

/** Seconds with microseconds, and the hart. */
function putPlace(text: TextBytes, nanos: number, hart: number): void {
  const micros = Math.floor(nanos / 1000);
  const rest = micros % 1_000_000;
  text.right((micros - rest) / 1_000_000, SECONDS);
  text.byte(POINT);
  text.padded(rest, 6);
  text.piece(BAR);
  text.right(hart, HART);
  text.piece(END_HART);
}

/** As `trace_print_graph_duration` does it: seven digits, of which up to three are behind the point. */
function putDuration(text: TextBytes, nanos: number): void {
  const rest = nanos % 1000;
  text.byte(markOf(nanos));
  text.byte(BLANK);
  const start = text.length;
  text.number((nanos - rest) / 1000);
  const decimals = Math.min(3, DIGITS - (text.length - start));
  if (decimals > 0) {
    text.byte(POINT);
    text.padded(Math.floor(rest / 10 ** (3 - decimals)), decimals);
  }
  text.piece(UNIT);
  text.blanks(Math.max(1, DURATION - 2 - (text.length - start)));
}

const PLUS = 0x2b;
/** Above these durations stands a mark. */
const marks = [1e9, 1e8, 1e7, 1e6, 1e5].map((above, i) => ({ above, mark: '$@*#!'.charCodeAt(i) }));

function markOf(nanos: number): number {
  if (nanos <= 1e4) return BLANK;
  for (const { above, mark } of marks) if (nanos > above) return mark;
  return PLUS;
}
