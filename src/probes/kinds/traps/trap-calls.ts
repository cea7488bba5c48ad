import { type CallSignature, type Interrupted, linuxError, type TrapKind } from '../../../arch/index.js';
import { madeOnce } from '../../../base/made-once.js';
import type { Moment, OpenCall, OpenKind, TracedCall } from '../../../calls/index.js';
import type { ArgumentValue, FunctionRef } from '../../../trace/index.js';
import { CallEvents, type EventfulCall } from '../call-events.js';
import type { TracerContext } from '../kind.js';
import { callResult } from './call-values.js';

const none: readonly never[] = [];

export interface OpenTrap extends EventfulCall {
  /** Of a system call, where it is known what that is given. */
  readonly signature: CallSignature | undefined;
  readonly from: Interrupted;
}

export type TrapCall = OpenCall<TracedCall> & { readonly payload: OpenTrap };

interface TrapBegin {
  readonly kind: TrapKind;
  /** With its kind: `irq::supervisor_timer`. */
  readonly name: string;
  readonly values: readonly ArgumentValue[];
  readonly signature?: CallSignature | undefined;
  readonly from: Interrupted;
}

/** Makes events of traps that begin and end, whatever shows them. */
export class TrapCalls extends CallEvents implements OpenKind {
  readonly #context: TracerContext;
  readonly #refs = new Map<string, FunctionRef>();
  /** The register with what a system call returns. */
  readonly #result: string | undefined;
  /** Its errors have names. */
  readonly #isLinux: boolean;

  constructor(context: TracerContext, result: string | undefined, isLinux: boolean) {
    super(context.output);
    this.#context = context;
    this.#result = result;
    this.#isLinux = isLinux;
  }

  open({ kind, name, values, signature, from }: TrapBegin, at: Moment): OpenTrap {
    const ref = madeOnce(this.#refs, name, () => {
      const key = this.#context.nextKey();
      return { key, name, instance: name, address: at.pc, file: undefined, line: undefined, kind };
    });
    const began = this.output.at(at.time);
    const shown = this.#context.values === false ? none : values;
    const isInterrupt = kind === 'irq';
    return { kind: this, ref, began, hart: at.hart, values: shown, signature, from, exit: undefined, isInterrupt };
  }

  returning({ payload }: TrapCall, at: Moment): void {
    if (!payload.exit) this.keepResult(payload, at);
  }

  /** It ends with what the registers hold here, at this or at a later moment. */
  protected keepResult(payload: OpenTrap, { hart, registers }: Moment): void {
    const { values = true } = this.#context;
    const isCall = values && payload.ref.kind === 'syscall' && this.#result !== undefined;
    const result = isCall ? registers.register(this.#result ?? '') : undefined;
    payload.exit = { hart, result: result === undefined ? undefined : this.#resultText(payload, result) };
  }

  #resultText({ signature }: OpenTrap, result: bigint): string {
    const error = this.#isLinux ? linuxError(result) : undefined;
    const text = callResult(signature, result);
    return error === undefined ? text : `${text} ${error}`;
  }
}
