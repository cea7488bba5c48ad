import type { FutureSet, StuckTask } from '../../../async/futures/index.js';
import type { EventOutput } from '../../../calls/index.js';
import type { PollProbes } from './resolve.js';
import type { TaskBook } from './wakes.js';

interface Known {
  readonly futures: FutureSet;
  readonly polls: Pick<PollProbes, 'ref' | 'allows'>;
  readonly tasks: TaskBook;
  readonly output: EventOutput;
}

/** Emits an event for each of these tasks that was polled, or whose Futures the probes select. */
export function reportStuck(found: readonly StuckTask[], { futures, polls, tasks, output }: Known): void {
  const byInstance = new Map(futures.all.map((future) => [future.instance, future]));
  for (const { futures: nodes, ...about } of found) {
    const root = nodes
      .map(({ address, instance }) => ({ root: tasks.withFuture(address), instance }))
      .find(({ root, instance }) => root?.future.instance === instance)?.root;
    const selected = nodes.find(({ instance }) => {
      const future = byInstance.get(instance);
      return future !== undefined && polls.allows(future);
    });
    const future = root?.future ?? (selected && refOf(byInstance.get(selected.instance), polls));
    const address = root?.address ?? selected?.address;
    if (future && address !== undefined)
      output.emit({ type: 'stuck', time: output.time, root, future, address, ...about });
  }
}

function refOf(future: FutureSet['all'][number] | undefined, { ref }: Known['polls']) {
  return future && ref(future);
}
