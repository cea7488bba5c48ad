import { isInFirmware } from '../clock/index.js';
import { callerKeeps, codeIsFull } from '../inject/index.js';
import { leavesValuesOut, stackIsRead, trapIsRead } from '../probes/index.js';
import { topOfRamRefused } from '../scratch/index.js';
import { guestsRunIt, insideKernel } from '../target/index.js';
import { plural } from '../text/index.js';
import type { ProbeFact } from '../trace/index.js';
import { eachStops, stopsAsked } from './engine-choice.js';

/** How many probes run without stops, and why the others do not. */
interface EngineSummary {
  readonly probes: number;
  readonly withoutStops: number;
  readonly stopping: number;
  readonly leftOut: number;
  /** Left out too, but nobody asked for them: what they are for, and how many. They do not count in the others. */
  readonly extras: readonly { readonly what: string; readonly probes: number }[];
  /** Of those that are left out: they were switched off, because they had stopped the target too often. */
  readonly switchedOff: number;
  /** Of those that are left out: there were too many. */
  readonly crowded: number;
  /** Of those without stops: functions whose calls have no durations, because only a stop would observe a return. */
  readonly withoutDurations: number;
  /** Of those without stops: what is not seen of them. */
  readonly partly: readonly StopReason[];
  /** Of these: why returns are not seen, and what else is not. */
  readonly unseenReturns: readonly StopReason[];
  readonly otherwise: readonly StopReason[];
  /** Of those that stop or are left out: what holds for most probes comes first. */
  readonly reasons: readonly StopReason[];
}

interface StopReason {
  readonly why: string;
  readonly probes: number;
  /** How many names these have: one may be that of several places. */
  readonly functions: number;
  /** The first of the names. */
  readonly names: readonly string[];
  /** What has left them out. */
  readonly by?: ProbeFact['leftOutBy'];
}

/** What a recording rests on that no probe knows. */
export interface EngineSituation {
  /** The stub is that of a QEMU that emulates a machine. */
  readonly isMachineOfQemu: boolean;
  /** rsptrace has started it. */
  readonly isLaunched: boolean;
  /** A process of Linux. */
  readonly isProcess: boolean;
}

/** One change, as a code for programs and a sentence. */
interface StopAdvice {
  readonly code: string;
  readonly text: string;
}

/** An instruction in a reason, and where it is: reasons that differ in nothing else are one. */
const aBranch = /(^|: )(?:(?!: ).)*?0x[0-9a-f]+ at \+0x[0-9a-f]+ (leads|goes)/;
const aPlace = / at \+0x[0-9a-f]+/;
/** The same with operands: of `jmp qword ptr [rip + 0x39df0] at +0x3` what differs helps nobody. */
const anOperation = /(^|: )(?:(?:bnd|notrack|lock|repn?[ez]?) )?([a-z][\w.]*)(?: (?:(?!: ).)*?)? at \+0x[0-9a-f]+/;

const mostNames = 3;
const mostReasons = 5;

export function summarizeEngines(all: readonly ProbeFact[]): EngineSummary {
  const isExtra = ({ engine, extra }: ProbeFact): boolean => engine === 'none' && extra !== undefined;
  const choices = all.filter((fact) => !isExtra(fact));
  const extras = new Map<string, number>();
  for (const { extra = '' } of all.filter(isExtra)) extras.set(extra, (extras.get(extra) ?? 0) + 1);
  const count = { target: 0, stop: 0, none: 0 };
  for (const { engine } of choices) count[engine]++;
  return {
    probes: choices.length,
    withoutStops: count.target,
    stopping: count.stop,
    leftOut: count.none,
    extras: [...extras].map(([what, probes]) => ({ what, probes })),
    switchedOff: choices.filter(({ leftOutBy }) => leftOutBy === 'stops').length,
    crowded: choices.filter(({ leftOutBy }) => leftOutBy === 'number' || leftOutBy === 'harm').length,
    withoutDurations: choices.filter(({ unseenReturn }) => unseenReturn !== undefined).length,
    partly: grouped(choices, ({ partly }) => partly),
    unseenReturns: grouped(choices, ({ unseenReturn }) => unseenReturn),
    otherwise: grouped(choices, ({ partly, unseenReturn }) => (unseenReturn === undefined ? partly : undefined)),
    reasons: grouped(choices, ({ engine, why = '' }) => (engine === 'target' ? undefined : why)),
  };
}

/** The probes of which something is said, by what that is. */
function grouped(choices: readonly ProbeFact[], said: (fact: ProbeFact) => string | undefined): StopReason[] {
  const groups = new Map<
    string,
    { probes: number; readonly names: Set<string>; readonly by: ProbeFact['leftOutBy'] }
  >();
  for (const fact of choices) {
    const exact = said(fact);
    if (exact === undefined) continue;
    const why = exact.replace(aBranch, '$1a branch $2').replace(anOperation, '$1its $2').replace(aPlace, '');
    const group = groups.get(why) ?? { probes: 0, names: new Set(), by: fact.leftOutBy };
    groups.set(why, group);
    group.probes++;
    group.names.add(fact.name);
  }
  return [...groups]
    .map(([why, { probes, names, by }]) => ({
      ...{ why, probes, functions: names.size, names: [...names].slice(0, mostNames) },
      ...(by === undefined ? {} : { by }),
    }))
    .sort((a, b) => b.probes - a.probes);
}

/** `21 of 26 probes run without stops, 5 stop the target at each hit`. */
export function engineSentence({ probes, withoutStops, stopping, leftOut }: EngineSummary): string {
  if (withoutStops === probes)
    return `${plural(probes, 'probe')}, ${probes === 1 ? 'without stops' : 'all without stops'}`;
  if (stopping === probes)
    return `${plural(probes, 'probe')}, ${probes === 1 ? 'which stops' : 'all of which stop'} the target at each hit`;
  const parts = [
    ...(stopping > 0 ? [`${stopping} ${stopping === 1 ? 'stops' : 'stop'} the target at each hit`] : []),
    ...(leftOut > 0 ? [`${leftOut} ${leftOut === 1 ? 'is' : 'are'} left out`] : []),
  ];
  return [`${withoutStops} of ${plural(probes, 'probe')} run without stops`, ...parts].join(', ');
}

const extraTexts: Readonly<Record<string, string>> = {
  wakes: 'wakes are not traced, because that would stop the target too: --wakes always does so',
  drops: 'Futures that are dropped inside a task are not counted, because that would stop the target too',
};

/** What is not traced because it would take stops, and nobody asked for it: a sentence each. */
export function extraLines({ extras }: EngineSummary): string[] {
  return extras.map(({ what }) => extraTexts[what] ?? `${what} are not traced, because that would stop the target`);
}

/** `5: its Future has more than 24 places to read (a, b, c and 2 more)`, for the first reasons. */
export function reasonLines({ reasons, unseenReturns, otherwise, withoutDurations }: EngineSummary): string[] {
  const [first] = unseenReturns;
  return [
    ...linesOf(reasons),
    ...linesOf(otherwise).map((line) => `without stops, but ${line}`),
    ...(first ? [durationsLine(withoutDurations, first)] : []),
  ];
}

/** What calls have no durations, why most of them have none, and who has them. */
function durationsLine(probes: number, { why, names, functions, ...first }: StopReason): string {
  const most = first.probes < probes ? `${first.probes} of them: ` : '';
  const are = probes === 1 ? 'is counted without durations, which count' : 'are counted without durations, which count';
  return `${plural(probes, 'function')} ${are} for the callers (${most}${why}: ${names.join(', ')}${functions > mostNames ? ', ...' : ''}); --engine mixed has them, with a stop at each call and return`;
}

export function reasonLine({ why, probes, functions, names }: StopReason): string {
  const more = functions > names.length ? ` and ${functions - names.length} more` : '';
  return `${probes}: ${why} (${names.join(', ')}${more})`;
}

function linesOf(reasons: readonly StopReason[]): string[] {
  const lines = reasons.slice(0, mostReasons).map(reasonLine);
  const others = reasons.length - mostReasons;
  return others > 0 ? [...lines, `... and ${plural(others, 'other reason')}`] : lines;
}

/** Why further programs beside a kernel have no trampolines. */
export const besideKernel =
  'further programs (--elf) are traced by stops alone: memory of ours would not be in each of their address spaces';

/** Why nothing of a guest's RAM is kept from it. */
export const scratchNone = '--scratch none leaves the guest all its RAM';

/** Why a probe stops at which the recording ends: it does so once, so nobody need spare it. */
export const endsThere = 'the recording ends there';

/** What helps probes that were left out, by what did so. */
const waysBack: Readonly<Partial<Record<string, StopAdvice>>> = {
  stops: {
    code: 'engine-mixed',
    text: '--engine mixed keeps what was switched off, however often it stops the target',
  },
  number: {
    code: 'engine-mixed',
    text: '--engine mixed keeps what is left out, however slow that makes the target',
  },
  harm: {
    code: 'newer-gdbserver',
    text: 'take the gdbserver of GDB 14 or newer; --engine mixed keeps what is left out, at the risk of the program',
  },
};

/** Nothing would be left with `--engine target`. */
const takeFewer: StopAdvice = {
  code: 'leave-out',
  text: "take fewer probes: '!' before one leaves it out (-p '!fn:NAME'), and `rsptrace profile` needs none",
};

const nameScratch: StopAdvice = {
  code: 'name-scratch',
  text: 'name memory that nobody uses with --scratch ADDR,SIZE, or reserve some in the program as a section .rsptrace',
};

/** Reasons with advice of their own: each has this part. What is not here and the target's is a matter of memory. */
const ways: readonly (StopAdvice & { readonly part: string })[] = [
  {
    part: stopsAsked,
    code: 'leave-engine-stop',
    text: 'leave --engine stop away: the default takes stops only where it has to',
  },
  {
    part: stackIsRead,
    code: 'leave-bt',
    text: 'leave --bt away: it reads the stack, and only a stop can',
  },
  {
    part: trapIsRead,
    code: 'fewer-traps',
    text: 'take fewer kinds of traps (syscall:, fault:), and -icount shift=0 for QEMU, whose clock then stands at stops',
  },
  {
    part: scratchNone,
    code: 'leave-scratch-none',
    text: 'leave --scratch none away: of a QEMU at its reset (-S) some RAM is then kept from the guest',
  },
  {
    part: isInFirmware,
    code: 'later',
    text: 'begin when these harts have left their firmware, or only count (count:), which needs no counter',
  },
  {
    part: insideKernel,
    code: 'trace-in-kernel',
    text: 'trace the program in that kernel, with gdbserver there and --remote here; or its kernel, by the ELF of that',
  },
  {
    part: besideKernel,
    code: 'name-program',
    text: "name the program of a probe, -p 'fn:PROGRAM/GLOB', and fewer functions of further programs",
  },
  {
    part: callerKeeps,
    code: 'no-ipa-ra',
    text: 'compile with -fno-ipa-ra or with clang, or name memory for trampolines next to the code with --scratch ADDR,SIZE',
  },
  {
    part: leavesValuesOut,
    code: 'no-args',
    text: 'leave values out with --no-args',
  },
  { part: guestsRunIt, ...takeFewer },
  { part: topOfRamRefused, ...nameScratch },
  {
    part: eachStops,
    code: 'leave-out',
    text: "leave some out with '!' before a probe (-p '!fn:NAME')",
  },
];

const leaveOut: StopAdvice = {
  code: 'leave-out',
  text: "leave these out: all with --engine target, one with '!' before its probe (-p '!fn:NAME')",
};
/**
 * The one change that would spare most stops, or have what was switched off; undefined where none is known, and where
 * nothing stops. `refusal`: why no probe can do without stops in this target.
 */
export function adviceOnStops(
  { reasons, stopping, switchedOff, crowded, withoutStops }: EngineSummary,
  refusal: string | undefined,
  situation: EngineSituation,
): StopAdvice | undefined {
  const first = reasons.find(({ why }) => why !== endsThere);
  if (stopping + switchedOff + crowded === 0 || first === undefined) return undefined;
  const found = ownWay(first);
  if (found) return found;
  if (first.why === refusal) return wayToMemory(situation);
  return (first.why === codeIsFull ? wayToMemory(situation) : undefined) ?? (withoutStops === 0 ? takeFewer : leaveOut);
}

/** As a line for the user. */
export function adviceText({ code, text }: StopAdvice): string {
  return code === 'engine-mixed' ? text : `to spare most stops: ${text}`;
}

/** What helps where this is the reason, if that is the reason's own. */
function ownWay({ why, by }: Pick<StopReason, 'why' | 'by'>): StopAdvice | undefined {
  const { code, text } = waysBack[by ?? ''] ?? ways.find(({ part }) => why.includes(part)) ?? {};
  return code === undefined || text === undefined ? undefined : { code, text };
}

/** What helps probes that stop for this reason of their own. */
export function wayOutOf(reason: StopReason): string {
  return (ownWay(reason) ?? leaveOut).text;
}

/** What helps where this keeps trampolines from having memory; undefined where nothing is known to. */
export function wayOutWithout(memory: string, situation: EngineSituation): string | undefined {
  return (ownWay({ why: memory }) ?? wayToMemory(situation))?.text;
}

/** What would give trampolines memory; undefined where nothing is known to. */
function wayToMemory({ isMachineOfQemu, isLaunched, isProcess }: EngineSituation): StopAdvice | undefined {
  if (isProcess) return undefined;
  if (isMachineOfQemu && !isLaunched)
    return {
      code: 'start-with-run',
      text: 'start QEMU with `rsptrace run`, or with -S (a PC with -kernel) and attach before its kernel has run: both bring memory for trampolines; for this one name memory that nobody uses, with --scratch ADDR,SIZE, or --scratch top if its kernel has pages of 4 KiB and leaves the end of RAM alone',
    };
  if (isMachineOfQemu)
    return {
      code: 'name-scratch',
      text: 'take --scratch top if the kernel has pages of 4 KiB and leaves the end of RAM alone (that is watched); else name memory that nobody uses with --scratch ADDR,SIZE, or reserve some in the program as a section .rsptrace',
    };
  return nameScratch;
}
