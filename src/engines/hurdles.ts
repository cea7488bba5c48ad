// What keeps probes from running without stops: all of it at once, before anything is written to the target.
import type { Addr } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import { type ClosedCounter, closedCounter } from '../clock/index.js';
import type { ElfFile } from '../elf/index.js';
import { type Site, type SitePlan, whyProcessStops, within } from '../inject/index.js';
import { codeOf } from '../probes/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { expectedSlack, memoryMissing, type ScratchRequest } from '../scratch/index.js';
import { isLinuxProgram } from '../target/index.js';
import { plural } from '../text/index.js';
import type { ProbeFact } from '../trace/index.js';
import { type EnginePlanOptions, engineChoices, planEngines, whyNoTrampolines } from './engine-choice.js';
import { type EngineSituation, reasonLine, summarizeEngines, wayOutOf, wayOutWithout } from './engine-summary.js';

/** So many hurdles with one way out are said; the rest are counted. */
const mostTold = 5;

/** One of them. */
export interface Hurdle {
  /**
   * Stable, for programs. Of the probes' code: `code`, `reach`. Of the target: `trampolines`, `harts`, `process`,
   * `memory`, `counter`, `packets`, `boot`.
   */
  readonly code: 'code' | 'reach' | 'trampolines' | 'harts' | 'process' | 'memory' | 'counter' | 'packets' | 'boot';
  readonly text: string;
  /** What helps, or what is done about it anyway; undefined where nothing is known to. */
  readonly wayOut: string | undefined;
  /** How many probes it is of. */
  readonly probes: number;
}

/** Where code begins and ends: linkers define these where a program asks for them. */
const textBounds = ['etext', '_etext', '__etext', '__executable_start'];

/** What a function of Go calls where its stack is too small, before it begins anew on a larger one. */
const growers = ['runtime.morestack_noctxt', 'runtime.morestack'].flatMap((name) => [name, `${name}.abi0`]);

/**
 * What is to be known of a program's records, whichever engine makes them. A program may read its own code: neither
 * patches nor the breakpoints of a process can be hidden from it; a kernel has such symbols anyway.
 */
export function cautionsOf(elf: ElfFile): readonly { readonly text: string; readonly wayOut: string }[] {
  const first = (names: readonly string[]): string | undefined =>
    names.find((name) => elf.symbols.named(name).length > 0);
  const asked = isLinuxProgram(elf) ? first(textBounds) : undefined;
  const grower = first(growers);
  const cautions: { readonly text: string; readonly wayOut: string }[] = [];
  if (asked !== undefined)
    cautions.push({
      text: `the program asks where its code lies (${asked}): if it reads it, as a checksum of itself does, it sees patches there, and breakpoints as well`,
      wayOut: 'probe what it does not read',
    });
  if (grower !== undefined)
    cautions.push({
      text: `a function whose stack has to grow begins anew (${grower}): such a call counts twice, so counts of calls are upper bounds`,
      wayOut: 'probe functions that grow no stack (//go:nosplit)',
    });
  return cautions;
}

/**
 * What the program alone says: the reasons why probes stop, and code that a jump may not reach. `planned`: what
 * {@link planEngines} makes of the plan; `choices`: what {@link engineChoices} makes of both.
 */
export function hurdlesOfCode(
  { plan, planned, choices }: Readonly<{ plan: EnginePlanOptions; planned: SitePlan; choices: readonly ProbeFact[] }>,
  elf: ElfFile,
  given?: Addr,
): readonly Hurdle[] {
  const probes = plan.plans.length;
  const first = cautionsOf(elf).map((caution): Hurdle => ({ code: 'code', ...caution, probes }));
  if (plan.wanted === 'stop') return first;
  const whole = wholeTarget(plan);
  if (whole) return [...first, whole];
  const { reasons } = summarizeEngines(choices);
  const code = reasons.map((reason): Hurdle => {
    return { code: 'code', text: reasonLine(reason), wayOut: wayOutOf(reason), probes: reason.probes };
  });
  const far = farFrom(plan, planned, expectedSlack(elf), given);
  return [...first, ...code, ...(far ? [far] : [])];
}

/** What no probe of this target can do without. */
function wholeTarget({ arch, hart, plans, process = false }: EnginePlanOptions): Hurdle | undefined {
  const missing = whyNoTrampolines(arch, process);
  if (missing !== undefined) return { code: 'trampolines', text: missing, wayOut: undefined, probes: plans.length };
  if (hart === undefined || !isRefusal(hart)) return undefined;
  return { code: 'harts', text: hart.refused, wayOut: 'start the machine with one hart', probes: plans.length };
}

/**
 * Code of compilers that let no register be destroyed is patched with a near jump. It needs memory for trampolines
 * near it, or executable room for a hop.
 */
function farFrom(
  { arch, process }: EnginePlanOptions,
  { sites }: SitePlan,
  slack: { readonly address: Addr; readonly size: number } | undefined,
  given: Addr | undefined,
): Hurdle | undefined {
  const patches = arch.probeCode?.patches ?? [];
  const near = patches.find(({ kind }) => kind === 'near');
  // Where near jumps are the only kind, they reach all that memory is looked for in.
  if (!near || patches.length === 1 || process) return undefined;
  const room = slack && { address: slack.address, length: slack.size };
  const isFar = ({ plan, ways }: Site): boolean => {
    if (ways.some(({ kind }) => kind !== 'near')) return false;
    const start = codeOf(plan).address;
    const isGiven = given !== undefined && within(start, { address: given, length: 0 }, near.reach);
    return !isGiven && !(room && within(start, room, near.reach));
  };
  const far = sites.filter(isFar);
  if (far.length === 0) return undefined;
  const names = [...new Set(far.map(({ plan: { name } }) => name))];
  const shown = names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '');
  const reach = `${Math.round(near.reach / 2 ** 20)} MiB`;
  return {
    code: 'reach',
    text: `${far.length}: no register is free at the begin of their code for a long jump, and no room for one is within ${reach} (${shown})`,
    wayOut: `compile them with rustc, clang or -fpatchable-function-entry, or name memory for trampolines that near, with --scratch`,
    probes: far.length,
  };
}

/** What the target says, too. */
interface TargetFacts extends Omit<ScratchRequest, 'text' | 'process' | 'ram'> {
  readonly plan: EnginePlanOptions;
  /** How the RAM of a machine is read. */
  readonly pastWire: Refusal | object | undefined;
}

/**
 * Everything that can be known while the target stands. Reads only.
 * @returns the hurdles of the target first, then those of the code
 */
export async function findHurdles(facts: TargetFacts): Promise<readonly Hurdle[]> {
  const { session, arch, elf, plan, given } = facts;
  if (plan.wanted === 'stop') return [];
  const planned = planEngines(plan);
  const choices = engineChoices(plan, planned);
  const code = hurdlesOfCode({ plan, planned, choices }, elf, given?.address);
  const { sites } = planned;
  const [first] = sites;
  if (first === undefined) return code;
  const probes = sites.length;
  const found: Hurdle[] = [];
  if (isProcess(session.features)) {
    const why = whyProcessStops(session);
    return why === undefined ? code : [{ code: 'process', text: why, wayOut: undefined, probes }, ...code];
  }
  const { hidden } = facts;
  if (hidden && isRefusal(hidden) && hidden.wayOut !== undefined)
    found.push({ code: 'boot', text: hidden.refused, wayOut: hidden.wayOut, probes });
  const missing = await memoryMissing({ ...facts, text: first.plan.address, process: undefined });
  if (missing) {
    const wayOut = wayOutWithout(missing.refused, await situationOf(facts.session, facts.hidden !== undefined));
    found.push({ code: 'memory', text: missing.refused, wayOut, probes });
  }
  const records = sites.filter(({ counters }) => counters === 0).length;
  const closed = records > 0 ? await closedCounter(session, arch) : undefined;
  if (closed) found.push(counterHurdle(closed, records));
  const { pastWire } = facts;
  if (!missing && pastWire && 'refused' in pastWire) {
    const { refused, wayOut } = pastWire as Refusal;
    const text = `the guest's RAM is read by packets, so a full ring is a stop: ${refused}`;
    if (!facts.hidden || isRefusal(facts.hidden) || !facts.hidden.isShared)
      found.push({ code: 'packets', text, wayOut, probes: records });
  }
  return [...found, ...code];
}

/** The kernel may not read the counter of the records; rsptrace lets it. */
export function counterHurdle({ register, harts }: ClosedCounter, probes: number): Hurdle {
  return {
    code: 'counter',
    text: `the kernel may not read the time counter (${register}, on ${plural(harts.length, 'hart')})`,
    wayOut: 'rsptrace lets it while it records, and closes it again',
    probes,
  };
}

/** What advice on stops depends on. `isLaunched`: the target was started by rsptrace. */
export async function situationOf(session: Session, isLaunched: boolean): Promise<EngineSituation> {
  return {
    isMachineOfQemu: (await session.stub()).name === 'qemu-system',
    isLaunched,
    isProcess: isProcess(session.features),
  };
}

/** Whether it is of the target, so that it is of all probes. */
export function isOfTarget({ code }: Hurdle): boolean {
  return code !== 'code';
}

/** For people: the hurdles that one thing helps against, those of most probes first, and under them what helps. */
export function hurdleLines(hurdles: readonly Hurdle[]): string[] {
  const ways = [...new Set(hurdles.map(({ wayOut }) => wayOut))];
  const probesOf = (group: readonly Hurdle[]): number => group.reduce((sum, { probes }) => sum + probes, 0);
  return ways
    .map((wayOut) => ({ wayOut, group: hurdles.filter((each) => each.wayOut === wayOut) }))
    .sort((a, b) => probesOf(b.group) - probesOf(a.group))
    .flatMap(({ wayOut, group }) => {
      const others = group.slice(mostTold);
      const texts = group.slice(0, mostTold).map(({ text }) => text);
      if (others.length > 0)
        texts.push(`... and ${plural(others.length, 'other reason')} (${plural(probesOf(others), 'probe')})`);
      return wayOut === undefined ? texts : [...texts, `  way out: ${wayOut}`];
    });
}

/** For `--json`. */
export function hurdlesJson(hurdles: readonly Hurdle[]): object[] {
  return hurdles.map(({ code, text, wayOut, probes }) => ({ code, text, way_out: wayOut ?? null, probes }));
}
