// `rsptrace top --json`: a line a look; and what its tables are made of.
import type { FoundTasks } from '../../api/index.js';
import type { Task } from '../../async/tasks/index.js';
import { hex } from '../../base/addr.js';
import { jsonLine } from '../../text/index.js';
import { findingsJson, refer, taskJson } from '../tasks-report.js';
import type { Row, Status } from './history.js';
import type { Look } from './look.js';

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

/** A lock, channel or semaphore with those who wait for it and those who can end that. */
interface Resource {
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
  const found = new Map<string, Omit<Resource, 'waiting' | 'by'> & Record<'waiting' | 'by', Set<Task>>>();
  for (const [task, own] of waits) {
    for (const { kind, address, symbol, how, enders } of own) {
      if (address === undefined) continue;
      const key = `${kind} ${hex(address)}`;
      const one = found.get(key) ?? { kind, address: hex(address), symbol, how, waiting: new Set(), by: new Set() };
      one.waiting.add(task);
      for (const ender of enders) one.by.add(ender.task);
      found.set(key, one.how === undefined ? { ...one, how } : one);
    }
  }
  const all = [...found.values()].map((one) => ({ ...one, waiting: [...one.waiting], by: [...one.by] }));
  return all.sort((a, b) => b.waiting.length - a.waiting.length || (a.address < b.address ? -1 : 1));
}
