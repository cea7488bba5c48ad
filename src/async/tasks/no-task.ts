import { plural } from '../../text/index.js';
import type { FutureSet } from '../futures/index.js';
import type { Runtime } from './runtime.js';
import { search } from './runtimes/index.js';

/** Why no task was found, and what helps: two clauses of a sentence. */
export interface NoTask {
  readonly why: string;
  readonly wayOut: string;
}

/** What a look without a task has found instead. */
interface Looked {
  /** The runtimes that were asked. */
  readonly asked: readonly Runtime[];
  /** The names of those that the program uses. */
  readonly used: readonly string[];
  /** How many look like a task and are none. */
  readonly others: number;
  readonly notes: readonly string[];
}

const LATER = 'look again at another moment';

export function noTask(futures: Pick<FutureSet, 'all'>, { asked, used, others, notes }: Looked): NoTask {
  const known = used.filter((name) => name !== search.name);
  const unread = known.filter((name) => notes.some((note) => note.startsWith(`${name}: `)));
  if (unread.length > 0) {
    const why = `debug info about ${unread.join(' and ')} is missing, as the notes say`;
    return { why, wayOut: 'build all crates with debug = 2' };
  }
  if (known.length > 0) {
    const verb = known.length === 1 ? 'has' : 'have';
    const why = `${known.join(' and ')} ${verb} none alive in the memory that was read, so none is spawned yet or all have ended`;
    return { why, wayOut: `${LATER}; what a thread blocks on is no task, and rsptrace bt shows it` };
  }
  if (!asked.includes(search)) {
    const why = `the program does not use ${asked.map(({ name }) => name).join(' or ')}`;
    return { why, wayOut: 'leave out --runtime' };
  }
  if (futures.all.length === 0) return { why: 'the debug info has no Future', wayOut: 'build with debug = 2' };
  if (others > 0) return { why: 'nothing that lives leads to the boxed Futures in memory', wayOut: LATER };
  const boxed = futures.all.filter(({ vtables }) => vtables.length > 0).length;
  if (boxed > 0) {
    const why = `none of the ${plural(boxed, 'kind')} of Futures that it boxes is in the memory that was read`;
    return { why, wayOut: LATER };
  }
  const why = 'the program uses no runtime that is known and boxes none as dyn Future, so nothing says where tasks lie';
  return { why, wayOut: 'rsptrace record shows their polls, and a runtime of your own (--plugin) where they lie' };
}
