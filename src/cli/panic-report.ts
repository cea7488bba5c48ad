import { copyTarget, type FoundTasks, stacksAt, tasksIn, taskView } from '../api/index.js';
import { findFutures } from '../async/futures/index.js';
import type { AwaitNode } from '../async/tasks/index.js';
import { hex } from '../base/addr.js';
import { messageOf } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { panicVerdict, type Verdict } from '../check/index.js';
import { panicsAt } from '../probes/index.js';
import { loadedProgram, type Program } from '../record/index.js';
import type { Session } from '../rsp/index.js';
import { type SourceFrame, SourceFrames } from '../target/unwind/index.js';
import { shownPlace, textLines } from '../text/index.js';
import type { TaskRow, TaskSummary } from '../trace/index.js';
import { stacksJson, stacksText } from './bt.js';
import { note } from './failure.js';
import type { Prepared } from './recording/prepare.js';
import { tasksJson, tasksText } from './tasks-report.js';

/** A guest that stands in its panic: where it came to that, and in which task. */
export interface PanicLook {
  readonly text: string;
  readonly json: object;
  readonly verdict: Verdict;
}

/** Functions between a panic and who has panicked. */
const machinery =
  /(^|::)(rust_begin_unwind|rust_panic|panicking::|panic_(fmt|display|str|const|nounwind|bounds_check|handler))|^core::(result|option|slice|str|cell)::|\bpanic$/;

/**
 * The guest stands in its panic: looks at it, and lets it go on, so that it says what it has to say. The recording is
 * good without either: an error is only said.
 */
export async function leavePanic(
  session: Session,
  { program, logger }: Pick<Prepared, 'program' | 'logger'>,
  tasks: TaskSummary,
): Promise<PanicLook> {
  const traced = tasks.rows().filter(({ state }) => state === 'running');
  const look = await lookAtPanic(session, program, traced, logger).catch((thrown: unknown) => unseen(thrown, traced));
  await session.detach().catch((thrown: unknown) => {
    note(`the guest that has panicked cannot be left: ${messageOf(thrown)}`);
  });
  return look;
}

/** What the trace alone says of a panic. */
function unseen(thrown: unknown, traced: readonly TaskRow[]): PanicLook {
  const why = `the guest panicked, where cannot be read: ${messageOf(thrown)}`;
  note(why);
  return {
    text: `${why}\n\n${tracedText(traced)}`,
    json: { function: null, file: null, line: null, harts: [], polled: traced.map(polledJson), tasks: null },
    verdict: panicVerdict({ function: 'an unknown function' }),
  };
}

/**
 * Looks at a guest that stands where panics lead to. What cannot be read is said in the text. `traced`: the tasks that
 * the trace saw being polled then, because a stack may end before their polls.
 */
async function lookAtPanic(
  session: Session,
  linked: Program,
  traced: readonly TaskRow[],
  logger: Logger,
): Promise<PanicLook> {
  const { elf, arch, debug } = await loadedProgram(linked, session, logger);
  const sources = new SourceFrames(elf, debug);
  const { harts } = await stacksAt(session, { elf, arch, debug, logger });
  const stacks = harts.map(({ stack }) => stack.frames);
  const panicked = stacks.find(([first]) => first !== undefined && panicsAt(elf, first.pc));
  // The handler that a program has, or another function that panics, whatever its name.
  const callers = panicked?.slice(1) ?? stacks.flat();
  const guilty = guiltyOf(callers.flatMap((frame) => sources.of(frame)));
  const verdict = panicVerdict({ ...guilty, function: guilty?.function ?? 'an unknown function' });
  const head = `the guest panicked ${verdict.measured}${guilty?.file === undefined ? '' : ` at ${shownPlace(guilty.file, guilty.line)}`}\n\n`;
  const tasks = await tasksThere(session, { elf, arch, debug }, traced, logger);
  return {
    text: [`${head}${stacksText(harts, sources, false)}`, tasks.text].join('\n'),
    json: {
      ...{ function: guilty?.function ?? null, file: guilty?.file ?? null, line: guilty?.line ?? null },
      ...{ harts: stacksJson(harts, sources), polled: traced.map(polledJson), tasks: tasks.json },
    },
    verdict,
  };
}

/** Who has panicked: what the program itself has made, if the stack goes that far. */
function guiltyOf(frames: readonly SourceFrame[]): SourceFrame | undefined {
  const callers = frames.filter(({ function: name }) => name !== undefined && !machinery.test(name));
  return callers.find(({ file }) => file === undefined || !standardLibrary.test(file)) ?? callers[0];
}

/** Files of Rust's own libraries, as rustc names them and as rustup installs them. */
const standardLibrary = /\/rustc\/[0-9a-f]+\/library\/|\/rustlib\/src\/rust\/library\//;

/** The tasks that are being polled, each with the tree of what it awaits. */
async function tasksThere(
  session: Session,
  { elf, arch, debug }: Pick<Program, 'elf' | 'arch' | 'debug'>,
  traced: readonly TaskRow[],
  logger: Logger,
): Promise<{ readonly text: string; readonly json: object | null }> {
  if (debug === undefined) return { text: '', json: null };
  try {
    const program = { elf, debug, futures: findFutures(debug) };
    const copy = await copyTarget(session, { elf, debug }, { arch, logger });
    const found = await tasksIn(program, await taskView(program, copy));
    const addresses = new Set(traced.map(({ address }) => address));
    const polled = found.tasks.filter((task) => isPolled(task, found) || addresses.has(hex(task.address)));
    const shown = {
      elf: elf.path,
      found: { ...found, tasks: polled, others: [] },
      fields: undefined,
      stoodMs: undefined,
      mayHaveHeap: false,
      wanted: [],
    };
    const { tasks: json } = (await tasksJson(shown)) as { readonly tasks: object };
    return { text: polled.length === 0 ? tracedText(traced) : `in this task:\n\n${await tasksText(shown)}`, json };
  } catch (thrown) {
    return { text: `its tasks cannot be read: ${messageOf(thrown)}\n`, json: null };
  }
}

/** As the trace saw it. */
function polledJson({ future, address, await: last }: TaskRow): object {
  return { future, address, await: last };
}

/** Tasks whose Futures are not found in memory. */
function tracedText(traced: readonly TaskRow[]): string {
  if (traced.length === 0) return 'no task was being polled\n';
  return textLines(
    traced.map(({ future, address, await: last }) => {
      const waited = last ? `, it has waited at ${shownPlace(last.file, last.line ?? undefined)}` : '';
      return `in the task ${future} @${address}${waited}`;
    }),
  );
}

function isPolled(node: AwaitNode, found: FoundTasks): boolean {
  return found.isRunning(node) || node.awaits.some((inner) => isPolled(inner, found));
}
