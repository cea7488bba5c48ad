import type { Addr } from '../../../base/addr.js';
import type { EventOutput } from '../../../calls/index.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import type { Breakpoint } from '../../../rsp/index.js';
import { SourceFrames } from '../../../target/unwind/index.js';
import type { WatchAccess, WatchHit, WatchRef } from '../../../trace/index.js';
import { formatValue, type Shape, type Value, valueOfBytes } from '../../../values/index.js';
import { actingFunction } from '../poll/callers.js';
import type { WatchPlace } from './resolve.js';

/** Turns accesses into events: values as Rust prints them, and the code that accessed. */
export class WatchEvents {
  readonly #output: EventOutput;
  readonly #sources: SourceFrames;
  readonly #refs: WatchRef[] = [];

  constructor(elf: ElfFile, debug: DebugInfo | undefined, output: EventOutput) {
    this.#output = output;
    this.#sources = new SourceFrames(elf, debug);
  }

  emit({ point, old, value, hart, time, pc, exact }: Access): void {
    const inlined = this.#sources.entriesOf({ pc, exact });
    const watch = this.#ref(point);
    const { shape } = point.place;
    const changed = old && value && old.some((byte, index) => byte !== value[index]);
    const access = watch.access === 'w' || (watch.access === 'rw' && changed) ? 'write' : kinds[watch.access];
    const isRead = access === 'read';
    const now = value && valueOfBytes(shape, value);
    this.#output.moveTo(time);
    this.#output.emit({
      type: 'watch',
      time: this.#output.time,
      hart,
      watch,
      access,
      old: isRead || !old ? undefined : formatValue(valueOfBytes(shape, old)),
      value: now && formatValue(now),
      number: now && numberOf(now, shape),
      changed: isRead ? undefined : changed,
      pc,
      by: actingFunction(inlined),
      inlined,
    });
  }

  #ref(point: Watchpoint): WatchRef {
    this.#refs[point.index] ??= watchRef(point);
    return this.#refs[point.index] as WatchRef;
  }
}

/** What is known about an inserted watchpoint. */
export function watchRef({ place, index, breakpoint }: Watchpoint): WatchRef {
  const { spec, address, size, shape } = place;
  const access = accessOf(breakpoint);
  return { key: index, name: spec.name, access, asked: spec.access, address, size, type: shape.name };
}

const kinds: Readonly<Record<WatchAccess, WatchHit['access']>> = { r: 'read', w: 'write', rw: 'access' };

/** For a number, a bool, or a wrapper of one: an atomic, a cell. */
function numberOf(value: Value, shape: Shape): number | undefined {
  switch (value.kind) {
    case 'integer':
      return Number(value.value);
    case 'bool':
      return value.value ? 1 : 0;
    case 'float':
      return Number.isFinite(value.value) ? value.value : undefined;
    case 'struct': {
      const [only, second] = value.fields;
      const field = 'fields' in shape ? shape.fields[0] : undefined;
      return only && !second && field && value.variant === undefined ? numberOf(only.value, field.type()) : undefined;
    }
    default:
      return undefined;
  }
}

/** One watchpoint in the target, and what is known about the bytes under it. */
export interface Watchpoint {
  readonly place: WatchPlace;
  /** Its number, from 0. */
  readonly index: number;
  breakpoint: Breakpoint;
  /** The last bytes that were read there. */
  known: Uint8Array | undefined;
}

/** An access that the target has reported. */
export interface Access {
  readonly point: Watchpoint;
  readonly old: Uint8Array | undefined;
  readonly value: Uint8Array | undefined;
  readonly hart: number;
  readonly time: number;
  readonly pc: Addr;
  /** `pc` is the instruction itself; else it is the one after it. */
  readonly exact: boolean;
}

/** What a watchpoint of this type reports. */
export function accessOf({ type }: Breakpoint): WatchAccess {
  return type === 3 ? 'r' : type === 4 ? 'rw' : 'w';
}
