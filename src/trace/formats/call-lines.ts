// What texts of calls have in common: a line for a begin and one for its end; a single line for both if nothing
// happened in between. Written as events come; only the last begin waits for the next event.
import { madeOnce } from '../../base/made-once.js';
import { visible } from '../../text/index.js';
import type {
  AnyBegin,
  AnyEnd,
  ConsoleLine,
  FunctionRef,
  FutureRef,
  Gap,
  Reset,
  Stuck,
  TraceEvent,
} from '../events/events.js';
import { calledOf } from '../events/future-names.js';
import { isBegin, isEnd, OpenCalls, type Track } from '../events/open-calls.js';
import { Fold } from '../events/sinks.js';
import {
  accessText,
  actorText,
  cancelText,
  gapText,
  placeHitText,
  resetText,
  stateText,
  stuckText,
  wakeText,
} from '../events/text.js';
import type { TextPart } from './output/record-block.js';
import { encoded } from './text-lines.js';

/** Where the parts of a line stand: its track, and the text behind its indentation. Valid until the next line. */
export interface LineParts {
  readonly track: number;
  readonly text: number;
  readonly level: number;
  /** Of the thread, or of the hart. */
  readonly number: number;
}

/** Where lines go: a file, a terminal. */
export interface Lines {
  /** A line with its break. `parts`: of a call tree's line about a hart or thread. */
  textRecord(line: string | readonly TextPart[], parts?: LineParts): void;
  flush(): void;
  close(): void;
}

interface Line {
  readonly begin: AnyBegin;
  /** What is open around it on its hart, or in its thread. */
  readonly indent: number;
}

export type AboutAll = Gap | Reset | ConsoleLine | Stuck;

export abstract class CallLines extends Fold {
  protected readonly out: Lines;
  protected readonly open = new OpenCalls<Line>();
  /** Of the line that is composed, where its format knows them. */
  protected readonly parts: LineParts | undefined;
  /** It has begun, and nothing has happened since. */
  #pending: Line | undefined;

  constructor(out: Lines) {
    super();
    this.out = out;
  }

  event(event: TraceEvent): void {
    if (isBegin(event)) this.#begin(event);
    else if (isEnd(event)) this.#end(event);
    else {
      this.openPending();
      if (!('hart' in event)) this.write(`# ${this.comment(event)}`);
      else {
        const line = this.start(event, event.time, undefined, this.open.on(event).length);
        line.push('/* ', visible(noteText(event)), ' */');
        this.stop(line);
      }
    }
  }

  override flush(): void {
    this.out.flush();
  }

  /** The beginning of an event's line: where and when it was. What happened is to follow, then {@link stop}. */
  protected abstract start(track: Track, time: number, duration: number | undefined, indent: number): TextPart[];

  /** How far a call is indented, whose line is next. */
  protected abstract level(begin: AnyBegin): number;

  protected abstract called(line: TextPart[], begin: AnyBegin): void;

  /** What ends the line of a call in which nothing happened. */
  protected abstract whole(end: AnyEnd): string;

  protected abstract closed(line: TextPart[], begin: AnyBegin, end: AnyEnd): void;

  /** An end whose begin was not seen. */
  protected abstract orphan(end: AnyEnd): void;

  protected lasted(begin: AnyBegin, end: AnyEnd): number | undefined {
    return end.time - begin.time;
  }

  protected comment(event: AboutAll): string {
    if (event.type === 'gap') return gapText(event);
    if (event.type === 'reset') return resetText;
    return event.type === 'console' ? `console: ${event.text}` : stuckText(event);
  }

  protected openPending(): void {
    const line = this.#pending;
    if (line === undefined) return;
    this.#pending = undefined;
    const text = this.start(line.begin, line.begin.time, undefined, line.indent);
    this.called(text, line.begin);
    text.push(' {');
    this.stop(text);
  }

  protected stop(line: TextPart[]): void {
    line.push('\n');
    this.out.textRecord(line, this.parts);
  }

  protected write(line: string): void {
    this.out.textRecord(`${visible(line)}\n`);
  }

  #begin(begin: AnyBegin): void {
    this.openPending();
    const line = { begin, indent: this.level(begin) };
    this.open.begin(line);
    this.#pending = line;
  }

  #end(event: AnyEnd): void {
    const line = this.open.end(event);
    if (line === undefined) {
      this.openPending();
      this.orphan(event);
      return;
    }
    const { begin, indent } = line;
    const duration = this.lasted(begin, event);
    if (this.#pending === line) {
      this.#pending = undefined;
      const text = this.start(begin, begin.time, duration, indent);
      this.called(text, begin);
      text.push(visible(this.whole(event)));
      this.stop(text);
      return;
    }
    this.openPending();
    const text = this.start(begin, event.time, duration, indent);
    this.closed(text, begin, event);
    this.stop(text);
  }
}

const names = new WeakMap<FunctionRef | FutureRef, Uint8Array>();

/** What a text calls a function, or the poll of a Future. */
export function callName(event: AnyBegin | AnyEnd): Uint8Array {
  const what = 'function' in event ? event.function : event.future;
  return (
    names.get(what) ??
    madeOnce(names, what, () => encoded(visible('future' in what ? `poll ${calledOf(what)}` : what.name)))
  );
}

function noteText(event: Exclude<TraceEvent, AnyBegin | AnyEnd | AboutAll>): string {
  switch (event.type) {
    case 'derived-poll':
      return `poll ${calledOf(event.future)} = ${event.result} (derived)`;
    case 'state':
      return `${calledOf(event.future)}: ${event.to === undefined ? 'unknown state' : stateText(event.to)}`;
    case 'watch':
      return `${event.watch.name}: ${accessText(event)}, by ${actorText(event)}`;
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
