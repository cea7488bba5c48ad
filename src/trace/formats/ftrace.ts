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
import type { AnyBegin, AnyEnd, HartInfo, TraceEvent, TraceInfo, TraceSink } from '../events.js';
import { OpenCalls, type Track } from '../open-calls.js';
import { accessText, cancelText, doerText, gapText, placeHitText, resetText, stateText, wakeText } from '../text.js';
import type { Format } from './format.js';
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
      default:
        this.#openPending();
        this.#write(event, event.time, undefined, `${indentOf(this.#open.on(event).length)}/* ${noteText(event)} */`);
    }
  }

  /** An interrupt came, or is over: as `print_graph_irq` marks it. */
  interrupt({ hart }: Track, time: number, isOver: boolean): void {
    this.#openPending();
    const mark = isOver ? '<========== |' : '==========> |';
    this.#out.textRecord(`${timeText(time)} | ${String(hart).padStart(3)})   ${mark}\n`);
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
      this.#write(event, event.time, undefined, `} /* ${nameOf(event)} */`);
      return;
    }
    const { begin, indent } = line;
    const how = isLost ? ['lost'] : event.type === 'call-end' ? returned(event.result) : [];
    const duration = isLost ? undefined : event.time - begin.time;
    if (this.#pending === line) {
      this.#pending = undefined;
      this.#write(begin, begin.time, duration, `${indentOf(indent)}${callText(begin)};${noted(how.join(' '))}`);
      return;
    }
    this.#openPending();
    this.#write(begin, event.time, duration, `${indentOf(indent)}}${noted([nameOf(begin), ...how].join(' '))}`);
  }

  #openPending(): void {
    const line = this.#pending;
    if (line === undefined) return;
    this.#pending = undefined;
    const { begin, indent } = line;
    this.#write(begin, begin.time, undefined, `${indentOf(indent)}${callText(begin)} {`);
  }

  #write(track: Track, time: number, duration: number | undefined, text: string): void {
    const { hart, thread } = track;
    if (thread !== undefined) this.#switch(hart, thread.key);
    const spent = duration === undefined ? '               ' : durationText(duration);
    this.#out.textRecord(`${timeText(time)} | ${String(hart).padStart(3)}) ${spent}|  ${visible(text)}\n`);
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

type Note = Exclude<TraceEvent, AnyBegin | AnyEnd | { readonly type: 'gap' | 'reset' | 'console' }>;

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

function nameOf(event: AnyBegin | AnyEnd): string {
  return 'function' in event ? event.function.name : `poll ${event.future.future}`;
}

/** With arguments, as the kernel's option funcgraph-args writes them. */
function callText(begin: AnyBegin): string {
  const values = begin.type === 'call-begin' ? begin.arguments : [];
  return `${nameOf(begin)}(${values.map(({ name, value }) => `${name}=${value}`).join(', ')})`;
}

/** As funcgraph-retval writes it. */
function returned(result: string | undefined): readonly string[] {
  return result === undefined ? [] : [`ret=${result}`];
}

/** A text may have what ends a comment. */
function noted(text: string): string {
  return text === '' ? '' : ` /* ${text.replaceAll('*/', '* /')} */`;
}

const indents: string[] = [];

function indentOf(depth: number): string {
  indents[depth] ??= '  '.repeat(depth);
  return indents[depth] as string;
}

/** Seconds, with microseconds. */
function timeText(nanos: number): string {
  const micros = Math.floor(nanos / 1000);
  const rest = micros % 1_000_000;
  return `${String((micros - rest) / 1_000_000).padStart(5)}.${String(rest).padStart(6, '0')}`;
}

/** As `trace_print_graph_duration` does it: seven digits, of which up to three are behind the point. */
function durationText(nanos: number): string {
  const rest = nanos % 1000;
  const whole = String((nanos - rest) / 1000);
  const behind = String(rest)
    .padStart(3, '0')
    .slice(0, Math.max(0, 7 - whole.length));
  const text = whole.length < 7 ? `${whole}.${behind}` : whole;
  return `${markOf(nanos)} ${`${text} us`.padEnd(12)} `;
}

function markOf(nanos: number): string {
  if (nanos > 1e9) return '$';
  if (nanos > 1e8) return '@';
  if (nanos > 1e7) return '*';
  if (nanos > 1e6) return '#';
  if (nanos > 1e5) return '!';
  return nanos > 1e4 ? '+' : ' ';
}
