import type { FutureType } from '../async/futures/index.js';
import { RsptraceError } from '../base/errors.js';
import { littleEndian } from '../base/little-endian.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';
import type { HitMemory } from '../calls/index.js';
import type { DebugInfo } from '../dwarf/index.js';
import {
  type AssumedNumber,
  bytesAt,
  type NamedPlace,
  numberIn,
  ofFuture,
  onlyInState,
  type PollProbe,
  ProgramExpressions,
  planExpression,
  type ReadPlan,
  readsOf,
  registersOf,
  type Spot,
} from '../probes/index.js';
import {
  evaluateMemberExpr,
  type MemberExpr,
  type Operand,
  type PlainValue,
  parseMemberExpr,
  plainValue,
  readValue,
  type Shape,
  Unavailable,
  valueOfBytes,
} from '../values/index.js';

/** One expression that is read at each hit. */
export interface Capture {
  readonly text: string;
  readonly expression: MemberExpr;
}

/** @throws RsptraceError `EXPRESSION_SYNTAX` */
export function parseCapture(text: string): Capture {
  return { text, expression: parseMemberExpr(text) };
}

/** A value in a record, or one that is known without it. */
type Recorded = Spot | { readonly kind: 'known'; readonly value: PlainValue };

/** A value whose place depends on a Future's state. */
interface ByState {
  readonly kind: 'by-state';
  /** Where the state's number lies. */
  readonly state: Spot;
  /** By the state's number. */
  readonly plans: ReadonlyMap<bigint, Recorded>;
}

/** How one capture is read without a stop; a text: why only a stop can. */
export type CapturePlan = Recorded | ByState | string;

const most = 8;

/**
 * Plans a capture of a function's arguments, or of a Future in one state, `assumed`.
 * @throws RsptraceError `EXPRESSION_*` for what makes no sense there
 */
export function planCapture(
  { expression, text }: Capture,
  places: readonly NamedPlace[],
  program: ProgramExpressions | undefined,
  assumed?: AssumedNumber,
): Recorded | string {
  try {
    const { spot, why } = planExpression(expression, places, program, assumed);
    if (spot === undefined) return `'${text}' is read at a stop: ${why}`;
    if (!isFlat(spot.shape)) return `'${text}' is read at a stop: a ${spot.shape.name} points to what it is`;
    if (spot.kind === 'memory' && spot.loads.length > most)
      return `'${text}' is read at a stop: it takes more than ${most} loads`;
    return spot;
  } catch (error) {
    if (error instanceof RsptraceError && error.code === 'EXPRESSION_OPTIMIZED_OUT')
      return { kind: 'known', value: new Unavailable(hinted(error)) };
    throw error;
  }
}

function hinted({ message, hint }: RsptraceError): string {
  return hint === undefined ? message : `${message}: ${hint}`;
}

/** Its bytes are all of it. A type inside is asked about once for each depth: structs may repeat each other. */
function isFlat(shape: Shape): boolean {
  let level = new Set([shape]);
  for (let depth = 0; level.size > 0; depth++) {
    if (depth > most) return false;
    const inside = new Set<Shape>();
    for (const each of level) {
      const parts = each.size === undefined ? undefined : partsOf(each);
      if (parts === undefined) return false;
      for (const part of parts) inside.add(part);
    }
    level = inside;
  }
  return true;
}

/** The values that a value's own bytes consist of; undefined if it points to more. */
function partsOf(shape: Shape): readonly Shape[] | undefined {
  switch (shape.kind) {
    case 'integer':
    case 'float':
    case 'bool':
    case 'char':
    case 'unit':
    case 'enumeration':
      return [];
    case 'pointer':
      return shape.style === 'raw' || shape.style === 'fn' ? [] : undefined;
    case 'array':
      return [shape.element()];
    case 'struct': {
      const view = shape.view();
      if (view?.kind === 'through') return [view.type()];
      return view === undefined ? shape.fields.map((field) => field.type()) : undefined;
    }
    case 'enum':
      return [...shape.fields, ...shape.variants.flatMap((each) => each.fields())].map((field) => field.type());
    default:
      return undefined;
  }
}

/** What a record must hold for a capture. */
function spotsOf(plan: CapturePlan): readonly Spot[] {
  if (typeof plan === 'string' || plan.kind === 'known') return [];
  return plan.kind === 'by-state' ? [plan.state, ...[...plan.plans.values()].flatMap(spotsOf)] : [plan];
}

/** A function's plan with what its captures read besides. */
export function withCaptures(plan: ReadPlan, captures: readonly CapturePlan[]): ReadPlan {
  const reason = captures.find((each) => typeof each === 'string');
  if (reason !== undefined) return { ...plan, needsStop: plan.needsStop ?? reason, stopIsAsked: true };
  const spots = captures.flatMap(spotsOf);
  return {
    ...plan,
    entryRegisters: [...new Set([...plan.entryRegisters, ...registersOf(spots)])],
    entryReads: [...plan.entryReads, ...readsOf(spots)],
  };
}

/** The value at a fixed place, from a record. */
export function recordedValue(place: CapturePlan, registers: RegisterReader, memory: HitMemory): PlainValue {
  if (typeof place === 'string') return new Unavailable(place);
  if (place.kind === 'known') return place.value;
  const spot = place.kind === 'by-state' ? place.state : place;
  const bytes = bytesAt(spot, registers, memory);
  if (!(bytes instanceof Uint8Array)) return new Unavailable('it is not in the record');
  if (place.kind !== 'by-state') return plainValue(valueOfBytes(spot.shape, bytes));
  const number = littleEndian(bytes);
  return recordedValue(place.plans.get(number) ?? `the Future has no state ${number}`, registers, memory);
}

/** Works out expressions at stops, and reads what they name. */
export class StopReader {
  readonly program: ProgramExpressions;

  constructor(debug: DebugInfo) {
    this.program = new ProgramExpressions(debug);
  }

  /** The shape of the type at an offset of the debug info. */
  shape(typeOffset: number): Shape {
    const { shapes } = this.program;
    return shapes.of(shapes.debug.die(typeOffset));
  }

  /** `own`: what names stand for before statics do. What cannot be worked out is a value that says why. */
  async value(
    { expression }: Capture,
    memory: MemoryReader,
    own: (name: string) => Operand | undefined,
  ): Promise<PlainValue> {
    try {
      const { shapes, names } = this.program;
      const scope = { shapes, names, memory, own };
      return await this.read(await evaluateMemberExpr(expression, scope), memory);
    } catch (error) {
      if (error instanceof RsptraceError && error.code.startsWith('EXPRESSION_')) return new Unavailable(error.message);
      throw error;
    }
  }

  async read({ shape, place }: Operand, memory: MemoryReader): Promise<PlainValue> {
    return plainValue(await readValue(this.program.shapes, memory, shape, place, { limits: brief }));
  }
}

/** As much as a person looks at. */
const brief = { depth: 6, elements: 64, text: 1024, values: 1000 };

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
