import type { Addr } from '../../base/addr.js';
import type { MemoryNeed } from '../object-place.js';
import type { Shape } from '../shape.js';
import { defaultLimits, type ValueLimits } from '../value.js';
import type { TextPlan } from './text-plan.js';
import { TextPlans } from './text-plans.js';
import { type KnownMemory, type Spot, spotAt, TextReading } from './text-reading.js';

/**
 * Writes values of one type as text, straight from their bytes, for values that come by the million. The text is what
 * `formatValue(brief(value))` makes of a value that was read. Functions and concrete types behind vtables have no
 * names.
 */
export class ValueText {
  readonly #plan: TextPlan;
  readonly #reading: TextReading;

  constructor(plans: TextPlans, shape: Shape, limits: Partial<ValueLimits>) {
    this.#plan = plans.of(shape);
    this.#reading = new TextReading({ ...defaultLimits, ...limits });
  }

  /**
   * The value at an address, or what all of its bytes mean. Undefined if nothing of it was read.
   * What must be read first, if that is not known yet.
   */
  of(place: Addr | Uint8Array, memory: KnownMemory): string | MemoryNeed | undefined {
    const spot: Spot = typeof place === 'bigint' ? spotAt(place) : { base: undefined, bytes: place, start: 0 };
    const reading = this.#reading;
    reading.begin(memory);
    const text = reading.read(this.#plan, spot, 0);
    return reading.need ?? text;
  }
}

export { type KnownMemory, TextPlans };
