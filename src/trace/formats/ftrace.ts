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
import { startOf } from '../../base/file-bytes.js';
import { visible } from '../../text/index.js';
import type { AnyBegin, AnyEnd, HartInfo, TraceInfo } from '../events/events.js';
import type { Track } from '../events/open-calls.js';
import { CallLines, callName } from './call-lines.js';
import type { Format } from './format.js';
import { digitsOf, type TextPart } from './output/record-block.js';
import { blanks, DIGITS, headText, putRight } from './text-lines.js';

const HEAD = '# tracer: function_graph\n';

export const ftrace: Format = {
  name: 'ftrace function_graph',
  extensions: ['.ftrace'],
  about: "text as Linux' function_graph tracer prints it, for scripts that read that",
  use: 'read it as /sys/kernel/tracing/trace',
  isAppended: true,
  recognizes: (head) => startOf(head).startsWith(HEAD),
  open: (file) => new FunctionGraph(file),
};

export class FunctionGraph extends CallLines {
  /** By hart, the thread whose calls came last. */
  readonly #threads: (number | undefined)[] = [];

  override begin(info: TraceInfo): void {
    this.out.textRecord(`${HEAD}#\n${visible(`# ${headText(info)}`)}\n`);
    for (const hart of info.harts) this.hart(hart);
    this.out.textRecord('#     TIME        CPU  DURATION                  FUNCTION CALLS\n');
    this.out.textRecord('#      |          |     |   |                     |   |   |   |\n');
  }

  override hart({ number, name }: HartInfo): void {
    this.out.textRecord(`${visible(`# CPU ${number} is ${name}`)}\n`);
  }

  /** An interrupt came, or is over: as `print_graph_irq` marks it. */
  interrupt({ hart }: Track, time: number, isOver: boolean): void {
    this.openPending();
    const line: TextPart[] = [];
    putPlace(line, time, hart);
    line.push(isOver ? '  <========== |' : '  ==========> |');
    this.stop(line);
  }

  override end(): void {
    this.openPending();
    this.out.close();
  }

  protected level(begin: AnyBegin): number {
    return this.open.on(begin).length;
  }

  /** With arguments, as the kernel's option funcgraph-args writes them. */
  protected called(line: TextPart[], begin: AnyBegin): void {
    const values = begin.type === 'call-begin' ? begin.arguments : [];
    line.push(callName(begin));
    if (values.length === 0) line.push('()');
    else line.push(visible(`(${values.map(({ name, value }) => `${name}=${value}`).join(', ')})`));
  }

  protected override lasted(begin: AnyBegin, end: AnyEnd): number | undefined {
    return isLost(end) ? undefined : end.time - begin.time;
  }

  protected whole(end: AnyEnd): string {
    const result = returned(end);
    return isLost(end) ? '; /* lost */' : result === '' ? ';' : `; /* ${result} */`;
  }

  protected closed(line: TextPart[], begin: AnyBegin, end: AnyEnd): void {
    const result = returned(end);
    line.push('} /* ', callName(begin));
    line.push(isLost(end) ? ', lost */' : result === '' ? ' */' : visible(` ${result} */`));
  }

  protected orphan(end: AnyEnd): void {
    const line = this.start(end, end.time, undefined, 0);
    line.push('} /* ', callName(end), ' */');
    this.stop(line);
  }

  protected start({ hart, thread }: Track, time: number, duration: number | undefined, indent: number): TextPart[] {
    if (thread !== undefined) this.#switch(hart, thread.key);
    const line: TextPart[] = [];
    putPlace(line, time, hart);
    if (duration === undefined) line.push(blanks(DURATION));
    else putDuration(line, duration);
    line.push('|  ', blanks(2 * indent));
    return line;
  }

  #switch(hart: number, thread: number): void {
    const before = this.#threads[hart];
    if (before === thread) return;
    this.#threads[hart] = thread;
    if (before === undefined) return;
    const rule = ' ------------------------------------------\n';
    const names = [before, thread].map((key) => `stack-${key}`.padStart(15));
    this.out.textRecord(`${rule} ${String(hart).padStart(3)}) ${names[0]} => ${names[1]}\n${rule}\n`);
  }
}

/** Characters of a duration, with its mark. */
const DURATION = 15;
const SECONDS = 5;
const HART = 3;
/** Of a duration, before and behind its point. */
const DIGITS_SHOWN = 7;

function isLost({ type }: AnyEnd): boolean {
  return type === 'call-lost' || type === 'poll-lost';
}

/** As funcgraph-retval writes it. A text may have what ends a comment. */
function returned(end: AnyEnd): string {
  return end.type === 'call-end' && end.result !== undefined ? `ret=${end.result.replaceAll('*/', '* /')}` : '';
}

/** Seconds with microseconds, and the hart. */
function putPlace(line: TextPart[], nanos: number, hart: number): void {
  const micros = Math.floor(nanos / 1000);
  const millis = Math.floor(micros / 1000);
  putRight(line, Math.floor(millis / 1000), SECONDS);
  line.push('.', DIGITS[millis % 1000] as string, DIGITS[micros % 1000] as string, ' | ');
  putRight(line, hart, HART);
  line.push(') ');
}

/** As `trace_print_graph_duration` does it: seven digits, of which up to three are behind the point. */
function putDuration(line: TextPart[], nanos: number): void {
  const rest = nanos % 1000;
  const whole = (nanos - rest) / 1000;
  const digits = digitsOf(whole);
  const decimals = Math.max(0, Math.min(3, DIGITS_SHOWN - digits));
  line.push(markOf(nanos), whole);
  if (decimals > 0) line.push('.', (DIGITS[rest] as string).slice(0, decimals));
  line.push(' us', blanks(Math.max(1, DURATION - 5 - digits - (decimals > 0 ? 1 + decimals : 0))));
}

/** Above these durations stands a mark. */
const marks = [1e9, 1e8, 1e7, 1e6, 1e5].map((above, i) => ({ above, mark: `${'$@*#!'[i]} ` }));

function markOf(nanos: number): string {
  if (nanos <= 1e4) return '  ';
  for (const { above, mark } of marks) if (nanos > above) return mark;
  return '+ ';
}
