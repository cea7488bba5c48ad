import type { HartInfo, TraceInfo } from './events.js';

/** What runs code is called: in a process a thread. */
export function hartWord({ isProcess = false }: Pick<TraceInfo, 'isProcess'>): 'hart' | 'thread' {
  return isProcess ? 'thread' : 'hart';
}

/** What each hart is called in texts: by its number, and a thread of a process by its name. */
export class HartLabels {
  #isProcess = false;
  readonly #names = new Map<number, string>();

  begin({ isProcess = false, harts }: Pick<TraceInfo, 'isProcess' | 'harts'>): void {
    this.#isProcess = isProcess;
    for (const hart of harts) this.hart(hart);
  }

  hart({ number, name }: HartInfo): void {
    this.#names.set(number, name);
  }

  of(number: number): string {
    const name = this.#isProcess ? this.#names.get(number) : undefined;
    return name ?? `${hartWord({ isProcess: this.#isProcess })} ${number}`;
  }
}
