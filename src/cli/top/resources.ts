// What tasks wait for: each lock, channel or semaphore with those who wait and those who can end that.
import type { FoundTasks } from '../../api/index.js';
import type { Task } from '../../async/tasks/index.js';
import { hex } from '../../base/addr.js';

export interface Resource {
  readonly kind: string;
  readonly address: string;
  readonly symbol: string | undefined;
  readonly waiting: readonly Task[];
  /** `held by`; undefined where memory does not say who can end the wait. */
  readonly how: string | undefined;
  readonly by: readonly Task[];
}

/** Those at an address, the one with the most waiting first. */
export function resourcesOf({ waits }: Pick<FoundTasks, 'waits'>): Resource[] {
  const found = new Map<string, Resource>();
  for (const [task, own] of waits) {
    for (const { kind, address, symbol, how, enders } of own) {
      if (address === undefined) continue;
      const key = `${kind} ${hex(address)}`;
      const before = found.get(key);
      const by = new Set([...(before?.by ?? []), ...enders.map((ender) => ender.task)]);
      const waiting = new Set([...(before?.waiting ?? []), task]);
      found.set(key, {
        ...{ kind, address: hex(address), symbol, how: before?.how ?? how },
        ...{ waiting: [...waiting], by: [...by] },
      });
    }
  }
  return [...found.values()].sort((a, b) => b.waiting.length - a.waiting.length || (a.address < b.address ? -1 : 1));
}
