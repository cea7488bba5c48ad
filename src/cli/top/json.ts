// `rsptrace top --json`: a line a look.
import type { Task } from '../../async/tasks/index.js';
import { jsonLine } from '../../text/index.js';
import { findingsJson, refer, taskJson } from '../tasks-report.js';
import type { Row, Status } from './history.js';
import type { Look } from './look.js';
import { resourcesOf } from './resources.js';

/** All that a look shows, in one line. */
export async function lookJson(
  elf: string,
  look: Look,
  rows: readonly Row[],
  findings: Pick<Look['found'], 'deadlocks' | 'lost'>,
): Promise<string> {
  const { number, at, stoodMs, found, threads, changing } = look;
  const row = async (each: Row): Promise<object> => ({
    ...{ status: each.status, settled: !changing.has(each.task), for_ms: Math.round(each.forMs) },
    ...{ looks: each.looks, ran: each.ran, changed: each.changed, active: each.active },
    ...(await taskJson({ found, fields: undefined }, each.task)),
  });
  const isBlocking = ({ task }: Row): boolean => found.blocking.includes(task);
  const { runtimes, searched, unread, notes } = found;
  return jsonLine({
    ...{ version: 1, program: elf, look: number, at: new Date(at).toISOString(), stood_ms: Number(stoodMs.toFixed(3)) },
    threads: threads ?? null,
    ...{ runtimes, searched, unread, notes, by_status: byStatus(rows), by_fate: byFate(found.others) },
    ...(found.noTask ? { noTask: found.noTask } : {}),
    tasks: await Promise.all(rows.filter((each) => !isBlocking(each)).map(row)),
    blocking: await Promise.all(rows.filter(isBlocking).map(row)),
    resources: resourcesOf(found).map(({ kind, address, symbol, waiting, how, by }) => ({
      ...{
        kind,
        address,
        symbol: symbol ?? null,
        waiting: waiting.map((task) => refer(found, task)),
        how: how ?? null,
        by: by.map((task) => refer(found, task)),
      },
    })),
    ...findingsJson({ ...found, ...findings }),
  });
}

export function byStatus(rows: readonly Row[]): Partial<Record<Status, number>> {
  const counts: Partial<Record<Status, number>> = {};
  for (const { status } of rows) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function byFate(others: readonly Task[]): Partial<Record<Task['fate'], number>> {
  const counts: Partial<Record<Task['fate'], number>> = {};
  for (const { fate } of others) counts[fate] = (counts[fate] ?? 0) + 1;
  return counts;
}
