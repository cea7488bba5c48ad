import type { FutureType } from '../async/futures/index.js';
import { RsptraceError } from '../base/errors.js';
import { type NamedPlace, numberIn, ofFuture, onlyInState, type PollProbe, type Spot } from '../probes/index.js';
import { Unavailable } from '../values/index.js';
import { type Capture, type CapturePlan, planCapture, type StopReader } from './captures.js';

/** Loads that one capture may add to a record, over all states of the Future. */
const mostLoads = 16;

type Planned = ReturnType<typeof planCapture>;

/**
 * Plans a capture of a Future's own members. A member of a compiler-made Future lies in each state where that state
 * keeps it, so there is a plan for each. A state without that member has a value that says so.
 * @throws RsptraceError `EXPRESSION_*` if it makes sense in none of them
 */
export function planPolled(
  capture: Capture,
  future: FutureType,
  { selfRegister: register }: Pick<PollProbe, 'selfRegister'>,
  reader: StopReader,
): CapturePlan {
  const { program } = reader;
  const pointer = { register, through: [] };
  const places: NamedPlace[] = [
    { name: 'self', shape: reader.shape(future.typeOffset), where: { kind: 'pointer', register } },
  ];
  const member = polledCapture(capture);
  const { discriminant, states } = future;
  if (!discriminant) return planCapture(member, places, program);
  const plans: [bigint, Planned][] = [];
  let failed: unknown;
  for (const { value } of states) {
    const number = BigInt(value);
    try {
      plans.push([number, planCapture(member, places, program, { pointer, ...discriminant, value: number })]);
    } catch (error) {
      if (!(error instanceof RsptraceError)) throw error;
      failed ??= error;
      plans.push([number, { kind: 'known', value: new Unavailable(error.message) }]);
    }
  }
  if (failed !== undefined && plans.every(([, plan]) => typeof plan === 'object' && plan.kind === 'known'))
    throw failed;
  return byState(capture, numberIn({ pointer, ...discriminant }), plans);
}

function byState({ text }: Capture, state: Spot, plans: readonly (readonly [bigint, Planned])[]): CapturePlan {
  const recorded = new Map<bigint, Exclude<Planned, string>>();
  const loads = new Set<string>();
  for (const [number, plan] of plans) {
    if (typeof plan === 'string') return plan;
    // In another state the same bytes are no pointer, and a trampoline would follow them all the same.
    if (plan.kind === 'memory' && plan.pointer.through.length > 0) return `'${text}' is read at a stop: ${onlyInState}`;
    if (plan.kind === 'memory') for (const { offset, size } of plan.loads) loads.add(`${offset} ${size}`);
    recorded.set(number, plan);
  }
  if (loads.size > mostLoads) return `'${text}' is read at a stop: it takes more than ${mostLoads} loads`;
  return { kind: 'by-state', state, plans: recorded };
}

/** At a poll a plain name is a member of the Future. */
export function polledCapture({ text, expression }: Capture): Capture {
  return { text, expression: ofFuture(expression) };
}
