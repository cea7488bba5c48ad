import { type Architecture, controlBlock, type HartSource, type ProbeCode } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { isRefusal, type Refusal, RsptraceError } from '../base/errors.js';
import { lookAtCode, type PatchVerdict, planSites, type RecordSources, type SitePlan } from '../inject/index.js';
import { type CodeEntries, type CodeFacts, codeOf, type ReadPlan } from '../probes/index.js';
import type { ProbeFact } from '../trace/index.js';
import type { EngineName } from './engine-names.js';

export interface EnginePlanOptions {
  readonly arch: Architecture;
  readonly wanted: EngineName;
  readonly plans: readonly ReadPlan[];
  /** The program's code, if the ELF has it. */
  readonly bytesAt: (address: Addr, length: number) => Uint8Array | undefined;
  readonly harts: number;
  /** How trampolines tell several harts apart. */
  readonly hart?: HartSource | Refusal | undefined;
  /**
   * Needed if functions' exits are to be patched. Undefined if the code changes as it runs, or if nothing is known of
   * it.
   */
  readonly facts?: CodeFacts | undefined;
  /** Where control may come into the program's text. */
  readonly entries?: CodeEntries | undefined;
  /** A process of Linux: threads come and go. */
  readonly process?: boolean;
  /** Each stop may damage the process, whatever is done there: `auto` makes none where most probes need none. */
  readonly stopsHarm?: boolean | undefined;
  /** What {@link lookAtPlans} has analysed already. */
  readonly looks?: readonly PatchVerdict[] | undefined;
}

/** Why each probe stops with `--engine stop`. */
export const stopsAsked = '--engine stop';

/** What a plan has decided about each probe, by its index: why it cannot do without stops, or why it can. */
type Decisions = Pick<SitePlan, 'refused'> & Partial<Pick<SitePlan, 'sites'>>;

/** The analysis before the target is known; undefined if no probe can do without stops anyway. */
export function lookAtPlans({
  arch: { probeCode },
  wanted,
  plans,
  bytesAt,
  facts,
  entries,
}: Pick<EnginePlanOptions, 'arch' | 'wanted' | 'plans' | 'bytesAt' | 'facts' | 'entries'>):
  | readonly PatchVerdict[]
  | undefined {
  if (wanted === 'stop' || !probeCode) return undefined;
  const codeAt = (plan: ReadPlan): Uint8Array | undefined => {
    const { address, length } = codeOf(plan);
    return bytesAt(address, length + paddingBehind(plan, probeCode, bytesAt, facts));
  };
  return lookAtCode(plans, codeAt, probeCode, { facts, entries });
}

/** The verdicts on code where harts start later, which only the target shows. */
function mapped({ plans, entries }: EnginePlanOptions): (look: PatchVerdict, index: number) => PatchVerdict {
  return (look, index) => {
    const why = entries?.unmapped((plans[index] as ReadPlan).address);
    return why === undefined ? look : { question: 'mapped', why };
  };
}

/** No compiler aligns functions further. */
const mostPadding = 16;

/** What a patch may use behind a function that is shorter: bytes that nothing runs, up to where the next one begins. */
function paddingBehind(
  { inside, address, codeSize }: ReadPlan,
  { patches, padding }: ProbeCode,
  bytesAt: EnginePlanOptions['bytesAt'],
  facts: CodeFacts | undefined,
): number {
  const isShort = patches.some(({ bytes }) => codeSize < bytes);
  if (inside || codeSize === 0 || !isShort || padding === undefined || facts === undefined) return 0;
  const space = bytesAt(addOffset(address, codeSize), facts.spaceBehind(address, codeSize, mostPadding));
  return space === undefined ? 0 : padding(space);
}

/**
 * What the code alone says about each probe's engine. Whether there is memory for trampolines, only the target says.
 */
export function planEngines(options: EnginePlanOptions): SitePlan {
  const { arch, wanted, plans, harts, hart, process = false } = options;
  const none = (why: string): SitePlan => ({
    sites: [],
    refused: new Map(plans.map((_, index) => [index, why])),
    slotShift: 0,
  });
  if (wanted === 'stop') return none(stopsAsked);
  const missing = whyNoTrampolines(arch, process);
  if (missing !== undefined) return none(missing);
  if (hart && isRefusal(hart)) return none(hart.refused);
  const sources = recordSources(options);
  const looks = options.looks ?? lookAtPlans(options) ?? [];
  return sources ? planSites(plans, harts > 1 ? looks.map(mapped(options)) : looks, sources) : none('');
}

/** Where records have their words from; undefined if there are no trampolines for this target. */
export function recordSources({ arch, hart, process }: EnginePlanOptions): RecordSources | undefined {
  const { probeCode, returnAddress } = arch;
  if (!probeCode || (hart && isRefusal(hart))) return undefined;
  const { floats } = probeCode;
  const register = returnAddress.in === 'register' ? returnAddress.name : undefined;
  return {
    // A kernel switches the unit on when it is used.
    floats: { names: new Set(floats), mayBeOff: !process },
    hart: process ? probeCode.process?.thread : hart,
    returnRegister: process ? undefined : register,
    outer: process ? { kind: 'outer' } : hart ? undefined : { kind: 'control', offset: controlBlock.outer },
  };
}

/** Why an architecture has none, for a process or a machine. */
export function whyNoTrampolines(arch: Architecture, process: boolean): string | undefined {
  if (!arch.probeCode) return withoutTrampolines(arch.name, arch.name);
  return process ? missingForProcess(arch) : missingForMachine(arch);
}

/** In the reason where there are no trampolines for what is traced. */
export const eachStops = 'each event stops the target';

function withoutTrampolines(name: string, what: string): string {
  return `on ${name} ${eachStops}, as trampolines for ${what} are not known`;
}

/** Why probes are left out that would have to stop, by what leaves them out. */
type LeftOut = readonly [by: ProbeFact['leftOutBy'], why: string];
const slowed = {
  machine: ['number', 'so many breakpoints would slow all code near them'],
  process: ['number', 'so many breakpoints would slow every stop'],
} as const;
const harmful = ['harm', 'each stop under this gdbserver may damage the program'] as const;

/**
 * So many breakpoints a machine may have with trampolines: where most probes run without stops, and where not. And a
 * process: gdbserver goes over all of them at each stop, 50 ms for 16,000.
 */
const mostBreakpoints = { few: 50, many: 1000, process: 2000 };

/** What each probe is carried out by. */
export function engineChoices(
  options: Pick<EnginePlanOptions, 'plans' | 'wanted' | 'process' | 'stopsHarm'>,
  { refused, sites = [] }: Decisions,
): readonly ProbeFact[] {
  const { plans, wanted } = options;
  const known = new Map(sites.map((site) => [site.index, site]));
  const facts = plans.map(({ name, subject, others, address, partly, notByStops }, index): ProbeFact => {
    // No literal begins with a spread: V8 would give each fact a hidden class of its own.
    const probe = { name, ...(subject === undefined ? {} : { subject }), address, ...(others && { others }) };
    const why = refused.get(index);
    if (why !== undefined) {
      const engine = wanted === 'target' || notByStops !== undefined ? 'none' : 'stop';
      return { engine, why, ...probe, ...(notByStops === undefined ? {} : { extra: notByStops }) };
    }
    const { proof, unseenReturn } = known.get(index) ?? {};
    const unseen = unseenReturn === undefined ? partly : `its calls are counted, without durations: ${unseenReturn}`;
    return {
      engine: 'target',
      why,
      ...probe,
      ...(proof === undefined ? {} : { proof: proof.text }),
      ...(unseen === undefined ? {} : { partly: unseen, unseenReturn }),
    };
  });
  const left = whyNoneStops(options, facts);
  if (left === undefined) return facts;
  const [leftOutBy, reason] = left;
  return facts.map(({ engine, why, ...fact }, index) =>
    engine === 'stop' && !options.plans[index]?.stopIsAsked
      ? { engine: 'none', why: `${reason}: ${why}`, leftOutBy, ...fact }
      : { engine, why, ...fact },
  );
}

/** Most probes run without stops, and nobody has asked for stops. */
function fewStop(plans: readonly ReadPlan[], facts: readonly ProbeFact[]): boolean {
  if (plans.every(({ stopIsAsked }) => stopIsAsked)) return false;
  return facts.filter(({ engine }) => engine === 'target').length * 2 > facts.length;
}

/**
 * Why probes that stop are left out; undefined if they are not. QEMU runs a page that has a breakpoint instruction by
 * instruction (accel/tcg/cpu-exec.c, check_for_breakpoints), hit or not, so some hundred bring a kernel to a halt.
 */
function whyNoneStops(
  { plans, wanted, process = false, stopsHarm = false }: Parameters<typeof engineChoices>[0],
  facts: readonly ProbeFact[],
): LeftOut | undefined {
  if (wanted !== 'auto' || plans.every(({ stopIsAsked }) => stopIsAsked)) return undefined;
  const few = fewStop(plans, facts);
  if (process && stopsHarm && few) return harmful;
  const stopping = facts.filter(({ engine }, index) => engine === 'stop' && !plans[index]?.stopIsAsked).length;
  if (process) return stopping > mostBreakpoints.process ? slowed.process : undefined;
  if (facts.every(({ engine }) => engine === 'stop')) return undefined;
  return stopping > (few ? mostBreakpoints.few : mostBreakpoints.many) ? slowed.machine : undefined;
}

function missingForProcess({ name, probeCode, linux }: Architecture): string | undefined {
  if (!probeCode?.process) return withoutTrampolines(name, 'processes');
  return linux?.systemCalls ? undefined : `system calls on ${name} are not known`;
}

function missingForMachine({ name, privilege, addressSpaces }: Architecture): string | undefined {
  if (!privilege) return `what runs in user mode on ${name} is not known`;
  return addressSpaces ? undefined : `page tables on ${name} are not known`;
}

/** The engine without stops was asked for by name. */
export function unavailable(why: string | undefined): RsptraceError {
  return new RsptraceError('ENGINE_UNAVAILABLE', `no probe can be carried out without stops: ${why}`, {
    hint: '--engine auto uses breakpoints for what needs them',
  });
}
