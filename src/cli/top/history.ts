// What consecutive looks say of a task: since when it has been as it is, and how often it was seen to do something.
import { BLOCK_ON, ITSELF, ownFuture, placeOf, type Task, type Wait } from '../../async/tasks/index.js';
import { hex } from '../../base/addr.js';
import type { Look } from './look.js';

/**
 * What a task does at a look. `changing`: its memory changed while it was copied, so it was polled then, or somebody
 * wrote to it. `blocked`: a thread polls it and waits in the kernel. `scheduled`: its runtime will poll it.
 */
export type Status = 'running' | 'blocked' | 'changing' | 'scheduled' | 'waiting' | 'new';
export const statuses: readonly Status[] = ['running', 'blocked', 'changing', 'scheduled', 'waiting', 'new'];

/** What one look adds to what is known of a task. */
export interface Mark {
  readonly status: Status;
  /** Since the look before, something of it had changed. */
  readonly changed: boolean;
}

/** A task, and what is known of it from all looks. */
export interface Row {
  readonly task: Task;
  /** By which it is found again at the next look. */
  readonly key: string;
  /** The runtime's number of it, else its address. */
  readonly id: string;
  readonly name: string;
  /** The await in the program's own code. */
  readonly place: string;
  /** What it waits for, and who can end that. */
  readonly waits: string;
  readonly status: Status;
  /** How long nothing of it has changed, in milliseconds: at least so long. */
  readonly forMs: number;
  /** Looks that have seen it. In `ran` of them it was polled, in `changed` it was not as at the look before. */
  readonly looks: number;
  readonly ran: number;
  readonly changed: number;
  /** Looks in which it ran, or was not as at the look before. */
  readonly active: number;
  /** The last looks, the oldest first. */
  readonly marks: readonly Mark[];
}

/** So many looks a task's history has. */
const MARKS = 60;

interface Kept {
  readonly row: Row;
  /** What its Futures consist of. */
  readonly bytes: string;
  /** With its status, and what it waits for. */
  readonly content: string;
  /** Since when it has been as it is, in milliseconds since 1970. */
  readonly since: number;
}

export class History {
  #kept = new Map<string, Kept>();
  #stuck: ReadonlySet<string> = new Set();

  /** The tasks of a look, with what was known before. */
  see(look: Look): Row[] {
    const { found, at } = look;
    const next = new Map<string, Kept>();
    for (const task of [...found.tasks, ...found.blocking]) {
      const key = keyOf(task);
      const before = this.#kept.get(key);
      const status = statusOf(look, task);
      const waits = (found.waits.get(task) ?? []).map(shortWait).join('; ');
      const bytes = look.contents.get(task) ?? '';
      // These are found in the same bytes.
      const same = before?.bytes === bytes ? before.row : undefined;
      const place = same?.place ?? placeOf(task) ?? '';
      const content = `${status} ${waits} ${bytes}`;
      const hasChanged = before !== undefined && (before.content !== content || status === 'changing');
      const since = before === undefined || hasChanged ? at : before.since;
      const ran = status === 'running' || status === 'blocked';
      const { looks = 0, ran: wasRun = 0, changed = 0, active = 0, marks = [] } = before?.row ?? {};
      const row: Row = {
        ...{ task, key, status, place, waits },
        id: idOf(task),
        name: same?.name ?? String(task.facts.name ?? ownFuture(task)),
        forMs: at - since,
        looks: looks + 1,
        ran: wasRun + Number(ran),
        changed: changed + Number(hasChanged),
        active: active + Number(ran || hasChanged),
        marks: [...marks, { status, changed: hasChanged }].slice(-MARKS),
      };
      next.set(key, { row, bytes, content, since });
    }
    this.#kept = next;
    return [...next.values()].map(({ row }) => row);
  }

  /**
   * The findings of a look that can be relied on. Of a target that runs, two looks in a row must have them, and none of
   * the tasks may have changed meanwhile.
   */
  findings({ found, changing, threads }: Look): Pick<Look['found'], 'deadlocks' | 'lost'> {
    const { deadlocks, lost } = found;
    if (threads === undefined) return { deadlocks, lost };
    const before = this.#stuck;
    const isSure = (task: Task): boolean =>
      !changing.has(task) &&
      before.has(keyOf(task)) &&
      this.#kept.get(keyOf(task))?.row.marks.at(-1)?.changed === false;
    const cycles = deadlocks.map(({ cycle }) => cycle.map(({ task }) => task));
    this.#stuck = new Set([...cycles.flat(), ...lost].map(keyOf));
    return { deadlocks: deadlocks.filter((_, i) => cycles[i]?.every(isSure)), lost: lost.filter(isSure) };
  }
}

function keyOf({ runtime, facts, address, typeName }: Task): string {
  return `${runtime} ${facts.id ?? hex(address)} ${typeName}`;
}

function statusOf({ found, changing }: Look, task: Task): Status {
  const words = String(task.facts.state ?? '').split(', ');
  if (found.blockedIn(task)) return 'blocked';
  if (found.isRunning(task) || words.includes('running')) return 'running';
  if (changing.has(task)) return 'changing';
  if (words.some((word) => ['notified', 'scheduled', 'in the run queue'].includes(word))) return 'scheduled';
  return task.state?.name === 'Unresumed' ? 'new' : 'waiting';
}

/** Its runtime's number of it, else its address; `block_on` for what a thread blocks on. */
export function idOf({ runtime, facts, address }: Task): string {
  return String(facts.id ?? (runtime === BLOCK_ON ? BLOCK_ON : hex(address)));
}

/** `Mutex, held by 12`; `readable (TcpStream fd 9)`. When a timer is due stands in the task's tree. */
function shortWait({ kind, symbol, detail, how, enders }: Wait<Task>): string {
  const more = detail === undefined || kind === 'timer' ? '' : ` (${detail})`;
  const what = `${kind}${symbol === undefined ? '' : ` ${symbol}`}${more}`;
  const ids = [...new Set(enders.map(({ task }) => idOf(task)))];
  if (how === undefined || ids.length === 0) return what;
  const shown = `${ids.slice(0, 3).join(', ')}${ids.length > 3 ? ` and ${ids.length - 3} more` : ''}`;
  return how === ITSELF ? `${what} ${shown}` : `${what}, ${how} ${shown}`;
}
