import { type EventOutput, emittedAround, type OpenCall, type TracedCall } from '../../calls/index.js';
import type { ArgumentValue, CallBegin, FunctionRef, GuestNanos } from '../../trace/index.js';

/** What is kept about an open call that emits the events of one. */
export interface EventfulCall extends TracedCall {
  emitted?: CallBegin | undefined;
  /** It emits no events, and is kept open because it may come back to its first instruction. */
  readonly isLeftOut?: boolean | undefined;
  /** The function, or what stands for one. */
  readonly ref: FunctionRef;
  readonly began: GuestNanos;
  readonly hart: number;
  /** Kept until the begin is emitted. */
  values: readonly ArgumentValue[];
  /** The values of its return, until they are emitted. */
  exit: { readonly hart: number; readonly result: string | undefined } | undefined;
}

type Emitting = OpenCall<TracedCall> & { readonly payload: EventfulCall };

const none: readonly never[] = [];

/** Emits the events of calls. */
export abstract class CallEvents {
  protected readonly output: EventOutput;

  constructor(output: EventOutput) {
    this.output = output;
  }

  began(call: Emitting): void {
    const { payload, depth, thread } = call;
    if (payload.isLeftOut) return;
    const { hart, ref, values } = payload;
    payload.values = none;
    const { time } = this.output;
    const around = emittedAround(call);
    const begin = { type: 'call-begin', time, hart, thread, function: ref, depth, around, arguments: values } as const;
    payload.emitted = begin;
    this.output.emit(begin);
  }

  ended({ payload, depth, thread, wasLost }: Emitting): void {
    const { ref, began, emitted: begin, exit, isLeftOut } = payload;
    if (!exit || isLeftOut) return;
    const { hart, result } = exit;
    const { time } = this.output;
    this.output.emit({ type: 'call-end', time, hart, thread, function: ref, depth, begin, began, result, wasLost });
  }

  lost({ payload, depth, thread }: Emitting, hart: number): void {
    const { ref, emitted, began, entryOnly, isLeftOut } = payload;
    if (isLeftOut) return;
    const { time } = this.output;
    const lost = { time, hart, thread, function: ref, depth, begin: emitted, began } as const;
    this.output.emit({ type: 'call-lost', ...lost, ...(entryOnly ? { entryOnly } : {}) });
  }
}
