import type { StuckTask } from '../futures/index.js';
import type { AwaitNode } from './await-tree.js';
import type { Task, Tasks } from './find-tasks.js';
import { awaitOf, waitText } from './wait-text.js';
import type { Wait } from './waits.js';

/** The tasks that will not be polled again, as memory shows: those of deadlocks, each once, and lost wakes. */
export function stuckTasks({ deadlocks, lost, waits }: Pick<Tasks, 'deadlocks' | 'lost' | 'waits'>): StuckTask[] {
  const found = deadlocks.flatMap(({ cycle, likely }) =>
    cycle.map(({ task, wait }): StuckTask => {
      const why = likely ? 'likely-deadlock' : 'deadlock';
      return { why, futures: futuresOf(task), wait: waitText(wait), ...placeOf(task, wait) };
    }),
  );
  const forgotten = lost.map((task): StuckTask => {
    const [wait] = waits.get(task) ?? [];
    const what = wait ? waitText(wait) : 'is suspended';
    return {
      why: 'lost-wake',
      futures: futuresOf(task),
      wait: `${what}, and no waker is left`,
      ...placeOf(task, wait),
    };
  });
  return [...found, ...forgotten];
}

function placeOf(task: Task, wait: Wait<Task> | undefined): Pick<StuckTask, 'file' | 'line'> {
  const { file, line } = awaitOf(task, wait && [...wait.above].reverse()) ?? {};
  return { file, line };
}

/** The task's Future, and those that it awaits, the outermost first. */
function futuresOf(task: AwaitNode): StuckTask['futures'] {
  const { address, typeName: instance } = task;
  return [{ address, instance }, ...task.awaits.flatMap(futuresOf)];
}
