import type { FieldSource, LoadBase, RecordField } from '../arch/index.js';
import { noteName, type PlannedReads, type ReadPlan } from '../probes/index.js';
import type { SlotReader } from './late-records.js';
import { layOut, type RecordFormat, type RecordSources, recordOffset } from './record-layout.js';

/** With one hart only, records need not name it. `inside`: ids of records that begin and end no call. */
export function slotReader(isOneHart: boolean, inside: ReadonlySet<number> = new Set()): SlotReader {
  return {
    hart(view, offset) {
      const at = offset + recordOffset.hart;
      return isOneHart ? 0 : view.getUint32(at, true) ^ view.getUint32(at + 4, true);
    },
    opens(view, offset) {
      const id = view.getUint32(offset + recordOffset.id, true);
      return inside.has(id) ? 0 : (id & 1) === 0 ? 1 : -1;
    },
  };
}

/** The most bytes that are copied out of an outer Future. */
export const mostOuter = 24;

/** Bytes for the copy of an outer Future, whichever of these Futures it is. */
export function outerRoom(plans: readonly ReadPlan[]): number {
  return plans.reduce((most, { outer }) => Math.max(most, outer ? copiedOffsets(outer).length : 0), 0);
}

/** Every byte's offset; none if there are more bytes than a record can hold. */
function copiedOffsets(outer: PlannedReads): number[] {
  const offsets = outer.loads.flatMap(({ offset, size }) => Array.from({ length: size }, (_, i) => offset + i));
  return offsets.length <= mostOuter ? offsets : [];
}

/** Tells whose record it is. */
export function idField(id: number): RecordField {
  return { at: recordOffset.id, size: 4, from: { kind: 'constant', value: BigInt(id) } };
}

/** The formats of many probes. A kernel has a hundred thousand, and most are alike: each is made once. */
export class RecordFormats {
  readonly #sources: RecordSources;
  /** Bytes for the copy of an outer Future. */
  readonly #room: number;
  readonly #known = new Map<string, RecordFormat>();

  constructor(sources: RecordSources, room: number) {
    this.#sources = sources;
    this.#room = room;
  }

  /** The record of a probe's entry. */
  entry(plan: Pick<ReadPlan, EntryPart>): RecordFormat {
    const { inside, entryRegisters, entryReads, entryExtents, readsOuter } = plan;
    const key = ['entry', inside && { taken: inside.taken }, entryRegisters, entryReads, entryExtents, readsOuter];
    return this.#once(key, () => entryFormat(plan, this.#sources, this.#room));
  }

  /** The record of its return. */
  exit({ exit }: Pick<ReadPlan, 'exit'>): RecordFormat {
    return this.#once(['exit', exit], () => exitFormat(exit, this.#sources));
  }

  #once(content: readonly unknown[], make: () => RecordFormat): RecordFormat {
    const key = JSON.stringify(content);
    const known = this.#known.get(key) ?? make();
    this.#known.set(key, known);
    return known;
  }
}

type EntryPart = 'inside' | 'entryRegisters' | 'entryReads' | 'entryExtents' | 'readsOuter';

function entryFormat(plan: Pick<ReadPlan, EntryPart>, sources: RecordSources, room: number): RecordFormat {
  const taken = (plan.inside?.taken ?? []).map(noteName);
  const words = [
    ...plan.entryRegisters.map((name) => ({ name, from: registerSource(name, sources) })),
    ...taken.map((name, index) => ({ name, from: { kind: 'kept', index } as FieldSource })),
  ];
  const base = (pointer: string): LoadBase => {
    const index = taken.indexOf(pointer);
    return index < 0 ? { kind: 'register', name: pointer } : { kind: 'kept', index };
  };
  const extents = plan.entryExtents ?? [];
  const content = { words, reads: plan.entryReads, extents, base, room: plan.readsOuter ? room : 0 };
  const entry = layOut(sources, content, plan.inside === undefined);
  if (plan.inside || sources.returnRegister === undefined) return entry;
  const registers = new Map(entry.registers).set(sources.returnRegister, recordOffset.returnAddress);
  return { ...entry, registers };
}

/** What the entry kept has the name `kept:` and its register's name. */
function exitFormat(exit: ReadPlan['exit'], sources: RecordSources): RecordFormat {
  const { keep, registers, reads } = exit;
  const words = [
    ...registers.map((name) => ({ name, from: registerSource(name, sources) })),
    ...keep.map((name, index) => ({ name: keptName(name), from: { kind: 'kept', index } as FieldSource })),
  ];
  const base = (name: string) => ({ kind: 'kept', index: keep.indexOf(name.slice(keptName('').length)) }) as const;
  const kept = reads.map((read) => ({ ...read, pointer: keptName(read.pointer) }));
  const { extents = [] } = exit;
  return layOut(sources, { words, reads: kept, extents, base, room: 0 });
}

function registerSource(name: string, { floats: { names, mayBeOff } }: RecordSources): FieldSource {
  return names.has(name) ? { kind: 'float', name, mayBeOff } : { kind: 'register', name };
}

function keptName(register: string): string {
  return `kept:${register}`;
}

/** What `controlBlock.outerPlan` points to. */
export function outerPlan(outer: PlannedReads): Uint8Array {
  const offsets = copiedOffsets(outer);
  return new Uint8Array(Uint32Array.of(offsets.length, ...offsets, outer.size, 0).buffer);
}
