import { type Addr, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';
import type { DebugInfo } from '../dwarf/index.js';
import { bytesIn, type FunctionProbe, type HitMemory, type PlannedLoad, type ReadPlan } from '../probes/index.js';
import {
  evaluateMemberExpr,
  fieldsOf,
  type MemberExpr,
  ObjectPlace,
  type Operand,
  type PlainValue,
  ProgramNames,
  parseMemberExpr,
  pick,
  plainValue,
  readValue,
  type Shape,
  Shapes,
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

/** Where a capture lies that a record can hold: in registers, or behind a register that holds a reference. */
export type FixedPlace = {
  readonly offset: number;
  readonly shape: Shape;
} & (
  | { readonly kind: 'registers'; readonly bytes: (registers: RegisterReader) => Uint8Array | undefined }
  | { readonly kind: 'memory'; readonly register: string; readonly loads: readonly PlannedLoad[] }
);

/** How one capture of a function is read without a stop; a text: why only a stop can. */
export type CapturePlan = FixedPlace | { readonly kind: 'known'; readonly value: PlainValue } | string;

const most = 8;
const word = 8;

/** Plans a capture of a function's arguments. */
export function planCapture({ expression, text }: Capture, probe: FunctionProbe): CapturePlan {
  const steps = stepsOf(expression);
  if (steps === undefined) return `'${text}' is worked out at a stop: it is more than members of an argument`;
  const [root = '', ...members] = steps;
  const argument = probe.arguments.find(({ name }) => name === root);
  if (argument === undefined) return `'${text}' is worked out at a stop: ${root} is no argument`;
  const { where, shape = machineWord } = argument;
  if (where.kind === 'unavailable')
    return { kind: 'known', value: new Unavailable(`${root} is not in registers at the entry`) };
  let at: Walk =
    where.kind === 'pointer'
      ? { register: where.register, offset: 0, shape }
      : { bytes: (registers) => bytesIn(where, shape.size ?? 0, registers), parts: where.parts, offset: 0, shape };
  for (const member of members) {
    const next = stepInto(at, member);
    if (next === undefined) return `'${text}' is read at a stop: ${member} lies behind more than one reference`;
    at = next;
  }
  if (!isFlat(at.shape)) return `'${text}' is read at a stop: a ${at.shape.name} points to what it is`;
  const { offset } = at;
  if ('bytes' in at) return { kind: 'registers', bytes: at.bytes, offset, shape: at.shape };
  const loads = loadsOf(offset, at.shape.size ?? 0);
  if (loads.length > most) return `'${text}' is read at a stop: it takes more than ${most} loads`;
  return { kind: 'memory', register: at.register, loads, offset, shape: at.shape };
}

type Walk = { readonly offset: number; readonly shape: Shape } & (
  | {
      readonly bytes: (registers: RegisterReader) => Uint8Array | undefined;
      readonly parts: readonly { readonly offset: number; readonly size: number; readonly register?: string }[];
    }
  | { readonly register: string }
);

/** A function without debug info has words. */
const machineWord: Shape = {
  ...{ kind: 'integer', signed: false, character: false },
  ...{ name: 'u64', size: word, die: undefined },
};

/** The argument's name and the members behind it; undefined for other expressions. */
function stepsOf(e: MemberExpr): string[] | undefined {
  if (e.kind === 'path') return [e.path];
  if (e.kind !== 'member') return undefined;
  const before = stepsOf(e.of);
  return before && [...before, e.name];
}

/** A member, through at most one reference that a register holds. */
function stepInto(from: Walk, member: string): Walk | undefined {
  let at = from;
  for (let hops = 0; hops < most; hops++) {
    const field = pick(fieldsOf(at.shape), member);
    if (field) return field.bits ? undefined : { ...at, offset: at.offset + field.offset, shape: field.type() };
    const { shape } = at;
    const view = shape.kind === 'struct' ? shape.view() : undefined;
    if (view?.kind === 'through') {
      at = { ...at, offset: at.offset + view.offset, shape: view.type() };
      continue;
    }
    const target = targetOf(shape);
    if (target === undefined || !('parts' in at)) return undefined;
    const pointer = at.offset + target.pointer;
    const register = at.parts.find((part) => part.offset === pointer && part.size === word)?.register;
    if (register === undefined) return undefined;
    at = { register, offset: target.offset, shape: target.shape };
  }
  return undefined;
}

/** What a pointer that is surely valid points to: a reference, `Box`, `Rc`, `Arc`. */
function targetOf(
  shape: Shape,
): { readonly pointer: number; readonly offset: number; readonly shape: Shape } | undefined {
  if (shape.kind === 'pointer' && /^(?:ref|mut|box)$/.test(shape.style)) {
    const target = shape.target();
    return target && { pointer: 0, offset: 0, shape: target };
  }
  const view = shape.kind === 'struct' ? shape.view() : undefined;
  if (view?.kind !== 'shared' || view.name === 'Weak' || view.target.kind !== 'sized') return undefined;
  return { pointer: view.pointer, offset: view.target.offset, shape: view.target.type() };
}

/** The name that an expression begins with; undefined where it begins with a number. */
export function rootOf(e: MemberExpr): string | undefined {
  if (e.kind === 'path') return e.path;
  return 'of' in e ? rootOf(e.of) : undefined;
}

/** Its bytes are all of it. */
function isFlat(shape: Shape, depth = 0): boolean {
  if (depth > most || shape.size === undefined) return false;
  switch (shape.kind) {
    case 'integer':
    case 'float':
    case 'bool':
    case 'char':
    case 'unit':
    case 'enumeration':
      return true;
    case 'pointer':
      return shape.style === 'raw' || shape.style === 'fn';
    case 'array':
      return isFlat(shape.element(), depth + 1);
    case 'struct': {
      const view = shape.view();
      if (view?.kind === 'through') return isFlat(view.type(), depth + 1);
      return view === undefined && shape.fields.every((field) => isFlat(field.type(), depth + 1));
    }
    case 'enum':
      return [...shape.fields, ...shape.variants.flatMap((each) => each.fields())].every((field) =>
        isFlat(field.type(), depth + 1),
      );
    default:
      return false;
  }
}

function loadsOf(start: number, length: number): PlannedLoad[] {
  const loads: PlannedLoad[] = [];
  for (let at = start; at < start + length && loads.length <= most; ) {
    const size = ([8, 4, 2, 1] as const).find((each) => at % each === 0 && at + each <= start + length) ?? 1;
    loads.push({ offset: at, size });
    at += size;
  }
  return loads;
}

/** A function's plan with what its captures read besides. */
export function withCaptures(plan: ReadPlan, captures: readonly CapturePlan[], isReadElsewhere: boolean): ReadPlan {
  const reason = captures.find((each) => typeof each === 'string');
  if (reason !== undefined) return { ...plan, needsStop: plan.needsStop ?? reason };
  const behind = captures.filter((each) => typeof each === 'object' && each.kind === 'memory');
  const [first] = behind;
  if (first === undefined) return plan;
  // A record finds memory by its address: two pointers of one value could not be told apart.
  if (isReadElsewhere || behind.some(({ register }) => register !== first.register))
    return { ...plan, needsStop: plan.needsStop ?? 'its captures lie behind several references' };
  const places = new Map(behind.flatMap(({ loads }) => loads).map((load) => [`${load.offset},${load.size}`, load]));
  const loads = [...places.values()].sort((a, b) => a.offset - b.offset);
  const size = Math.max(...loads.map((load) => load.offset + load.size));
  const align = Math.max(...loads.map((load) => load.size));
  const { register } = first;
  return {
    ...plan,
    entryRegisters: [...new Set([...plan.entryRegisters, register])],
    entryReads: [...plan.entryReads, { pointer: register, align, size, loads }],
  };
}

/** The value at a fixed place, from a record. */
export function recordedValue(place: CapturePlan, registers: RegisterReader, memory: HitMemory): PlainValue {
  if (typeof place === 'string') return new Unavailable(place);
  if (place.kind === 'known') return place.value;
  const { offset, shape } = place;
  const end = offset + (shape.size ?? 0);
  const bytes = place.kind === 'registers' ? place.bytes(registers) : recorded(place.register, end, registers, memory);
  if (bytes === undefined) return new Unavailable('it is not in the record');
  return plainValue(valueOfBytes(shape, bytes.subarray(offset, end)));
}

function recorded(
  register: string,
  length: number,
  registers: RegisterReader,
  memory: HitMemory,
): Uint8Array | undefined {
  const pointer = registers.register(register);
  return pointer === undefined ? undefined : memory.at(pointer as Addr, length)?.bytes;
}

/** Works out expressions at stops, and reads what they name. */
export class StopReader {
  readonly #shapes: Shapes;
  readonly #names: ProgramNames;

  constructor(debug: DebugInfo) {
    this.#shapes = new Shapes(debug);
    this.#names = new ProgramNames(debug);
  }

  /** The shape of the type at an offset of the debug info. */
  shape(typeOffset: number): Shape {
    return this.#shapes.of(this.#shapes.debug.die(typeOffset));
  }

  hasStatic(name: string): boolean {
    return this.#names.statics(name).length > 0;
  }

  /** `own`: what names stand for before statics do. What cannot be worked out is a value that says why. */
  async value(
    { expression }: Capture,
    memory: MemoryReader,
    own: (name: string) => Operand | undefined,
  ): Promise<PlainValue> {
    try {
      const scope = { shapes: this.#shapes, names: this.#names, memory, own };
      return await this.read(await evaluateMemberExpr(expression, scope), memory);
    } catch (error) {
      if (error instanceof RsptraceError && error.code.startsWith('EXPRESSION_')) return new Unavailable(error.message);
      throw error;
    }
  }

  async read({ shape, place }: Operand, memory: MemoryReader): Promise<PlainValue> {
    return plainValue(await readValue(this.#shapes, memory, shape, place, { limits: brief }));
  }
}

/** As much as a person looks at. */
const brief = { depth: 6, elements: 64, text: 1024, values: 1000 };

/** The arguments of a function at its entry, by name. */
export function argumentsAt(probe: FunctionProbe, registers: RegisterReader): (name: string) => Operand | undefined {
  return (name) => {
    const argument = probe.arguments.find((each) => each.name === name);
    if (argument === undefined) return undefined;
    const { where, shape = machineWord } = argument;
    return { shape, place: placeIn(where, shape.size ?? 0, registers) };
  };
}

/** Where a value lies that is in registers, or behind one; what is not known lies nowhere. */
export function placeIn(
  where: FunctionProbe['arguments'][number]['where'],
  size: number,
  registers: RegisterReader,
): ObjectPlace {
  if (where.kind === 'pointer') {
    const address = registers.register(where.register);
    if (address !== undefined) return ObjectPlace.memory(addr(address));
  }
  return ObjectPlace.bytes(bytesIn(where, size, registers) ?? new Uint8Array(0));
}
