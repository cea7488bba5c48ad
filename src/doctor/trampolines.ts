import type { Architecture, AssemblyLine, Displaced, ProbeCode } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import { type EnginePlanOptions, planEngines } from '../engines/index.js';
import {
  codeRoom,
  isMark,
  layOutTrampolines,
  type Patch,
  processCode,
  type SitePlan,
  type Trampoline,
} from '../inject/index.js';
import { codeOf } from '../probes/index.js';
import { type Proof, questions } from '../proof/index.js';
import type { Session } from '../rsp/index.js';
import { type Region, type ScratchSources, slackOf } from '../scratch/index.js';
import { textLines } from '../text/index.js';
import { trialScratch } from './program.js';

/** Memory in which trampolines are laid out, for display. */
interface ShownScratch {
  /** Its source; for assumed memory, why it is assumed. */
  readonly source: string;
  readonly madeUp: boolean;
  readonly code: Region;
  readonly data: Region;
  /** Executable zero bytes behind the text, for hops. */
  readonly near: Region | undefined;
}

/** A piece of code that would be written. */
interface CodePart {
  readonly part: 'patch' | 'hop' | 'entry' | 'exit' | 'end' | 'patch at end';
  readonly address: Addr;
  readonly lines: readonly AssemblyLine[];
}

/** One probe's layout, or why it has none. */
interface ProbeLayout {
  readonly name: string;
  readonly address: Addr;
  readonly why: string | undefined;
  readonly patch: { readonly kind: string; readonly length: number; readonly hop: boolean } | undefined;
  /** The instructions that the patch overwrites, as the ELF has them. */
  readonly displaced: readonly AssemblyLine[];
  readonly parts: readonly CodePart[];
  /** What is done and what is known that allows it; undefined with a stop. */
  readonly proof: Proof | undefined;
  /** With `isWhole`. */
  readonly whole: WholeCode | undefined;
}

/** A function's own code, and each question that must be answered before it is changed. */
interface WholeCode {
  readonly lines: readonly { readonly line: AssemblyLine; readonly isReplaced: boolean }[];
  readonly answers: readonly Answer[];
}

interface Answer {
  readonly question: string;
  /** What an objection forbids. */
  readonly forbids: 'probe' | 'patch' | 'hook';
  readonly isProven: boolean;
  /** What is known, or the objection. */
  readonly text: string;
}

export interface TrampolineReport {
  readonly scratch: ShownScratch;
  readonly probes: readonly ProbeLayout[];
}

/** A program with its probes, as `examine` takes it. */
interface TrampolineSubject {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  readonly plan: EnginePlanOptions;
}

/**
 * The memory that a recording at this stub would use; assumed if it has none. The target is stopped before and after
 * it.
 */
export async function targetScratch(
  session: Session,
  { elf, arch, plan }: TrampolineSubject,
  sources: ScratchSources,
): Promise<ShownScratch> {
  const planned = planEngines(plan);
  const near = await slackOf({ session, arch, elf });
  const found = await trialScratch(session, elf, arch, planned, sources);
  if (isRefusal(found)) return { ...madeUpScratch(elf, planned, found.refused), near };
  const { source, code, data } = found;
  return { source, madeUp: false, code, data, near };
}

const alignment = 0x20_0000n;
const pageBytes = 0x1000;
const ringBytes = 0x10_0000;

/** Memory at `at`, else behind the program's last byte, if the target does not say what is free. */
export function madeUpScratch(elf: ElfFile, { sites }: SitePlan, why: string, at?: Addr): ShownScratch {
  const ends = elf.segments.map(({ address, memorySize }) => address + BigInt(memorySize));
  const last = ends.reduce((most, end) => (end > most ? end : most), 0n);
  const code = at ?? addr(BigInt.asUintN(64, (last + alignment) & ~(alignment - 1n)));
  const size = Math.ceil(codeRoom(sites) / pageBytes) * pageBytes;
  const data = { address: addOffset(code, size), size: ringBytes };
  return { source: `made up: ${why}`, madeUp: true, code: { address: code, size }, data, near: undefined };
}

/**
 * Builds what would be written for every probe; the target is not changed. `isWhole`: each function's code and the
 * proof too.
 */
export function examineTrampolines(
  subject: TrampolineSubject,
  scratch: ShownScratch,
  isWhole = false,
): TrampolineReport {
  const { arch, plan } = subject;
  const planned = planEngines(plan);
  const code = plan.process ? processCode(arch) : arch.probeCode;
  const { sites, slotShift } = planned;
  const isOneHart = plan.harts === 1 && !plan.process;
  const layout =
    code && sites.length > 0
      ? layOutTrampolines({ code, sites, slotShift, scratch, near: scratch.near, nests: isOneHart })
      : undefined;
  const noRoom = layout ? undefined : 'the scratch memory has no room for a ring';
  const placement = layout?.placement;
  const probes = plan.plans.map(({ name, address }, index): ProbeLayout => {
    const why = planned.refused.get(index) ?? placement?.refused.get(index) ?? noRoom;
    const trampoline = placement?.trampolines.find(({ site }) => site.index === index);
    const patches = placement?.patches.filter(({ site }) => site.index === index) ?? [];
    const whole = isWhole && code ? wholeCode(plan, index, code, trampoline?.displaced, patches) : undefined;
    const none = { name, address, why, patch: undefined, displaced: [], parts: [], proof: undefined, whole };
    if (!code || !trampoline) return none;
    const { displaced, hop, site } = trampoline;
    return {
      ...none,
      patch: { kind: displaced.kind, length: displaced.patchLength, hop: hop !== undefined },
      displaced: code.disassemble(site.code.subarray(0, displaced.length), displaced.start),
      parts: partsOf(trampoline, patches, code.disassemble),
      proof: site.proof,
    };
  });
  return { scratch, probes };
}

/** `displaced`: undefined where nothing is replaced. */
function wholeCode(
  { plans, bytesAt, facts, entries }: EnginePlanOptions,
  index: number,
  probeCode: ProbeCode,
  displaced: Displaced | undefined,
  patches: readonly Patch[],
): WholeCode | undefined {
  const plan = plans[index];
  if (plan === undefined) return undefined;
  const replaced = [
    ...(displaced ? [displaced] : []),
    ...patches.map(({ address, bytes }) => ({ start: address, length: bytes.length })),
  ];
  const { address, length } = codeOf(plan);
  const lines = probeCode.disassemble(bytesAt(address, length) ?? new Uint8Array(0), address);
  const stopsIn = ({ address: from, length: size }: { readonly address: Addr; readonly length: number }): boolean =>
    plans.some(({ needsStop, address: at }) => needsStop !== undefined && at > from && at < from + BigInt(size));
  // Where there is no patch, the questions are asked of what the usual one would replace.
  const bytes = bytesAt(address, length);
  const [{ kind } = { kind: undefined }] = probeCode.patches;
  const wanted = displaced ?? (bytes && kind && !plan.inside ? probeCode.displace(bytes, address, kind) : undefined);
  const by = wanted && !isRefusal(wanted) ? wanted : undefined;
  const piece = { address: by?.start ?? address, length: Math.max(by?.length ?? 0, by?.patchLength ?? 0), by };
  const immovable = wanted && isRefusal(wanted) ? wanted.refused : undefined;
  return {
    lines: lines.map((line) => ({
      line,
      isReplaced: replaced.some((one) => line.address >= one.start && line.address < addOffset(one.start, one.length)),
    })),
    answers: [
      ...questions.map(({ name, forbids, holds, objection }): Answer => {
        const why = objection({ plan, probeCode, facts, entries, stopsIn }, piece);
        return { question: name, forbids, isProven: why === undefined, text: why ?? holds };
      }),
      ...(immovable === undefined
        ? []
        : [{ question: 'movable', forbids: 'patch', isProven: false, text: immovable } as const]),
    ],
  };
}

function partsOf(
  { hop, entry, exit, ends }: Trampoline,
  patches: readonly Patch[],
  disassemble: (code: Uint8Array, start: Addr) => readonly AssemblyLine[],
): CodePart[] {
  type Written = { readonly address: Addr; readonly bytes: Uint8Array };
  const shown = (part: CodePart['part'], written: readonly (Written | undefined)[]): CodePart[] =>
    written.flatMap((one) => (one ? [{ part, address: one.address, lines: disassemble(one.bytes, one.address) }] : []));
  const code = ends.filter(({ bytes }) => !isMark(bytes));
  return [
    ...shown(
      'patch',
      patches.filter(({ part }) => part !== 'exit'),
    ),
    ...shown('hop', [hop]),
    ...shown('entry', [entry]),
    ...shown('exit', [exit]),
    ...shown(
      'patch at end',
      patches.filter(({ part }) => part === 'exit'),
    ),
    ...shown('end', code),
  ];
}

export function trampolinesJson({ scratch, probes }: TrampolineReport): object {
  const region = ({ address, size }: Region): object => ({ address: hex(address), size });
  return {
    version: 1,
    scratch: {
      source: scratch.source,
      made_up: scratch.madeUp,
      code: region(scratch.code),
      data: region(scratch.data),
    },
    probes: probes.map(({ name, address, why, patch, displaced, parts, proof, whole }) => ({
      name,
      address: hex(address),
      why: why ?? null,
      patch: patch ?? null,
      displaced: displaced.map(lineJson),
      parts: parts.map(({ part, address, lines }) => ({ part, address: hex(address), code: lines.map(lineJson) })),
      proof: proof?.text ?? null,
      code: whole?.lines.map(({ line, isReplaced }) => ({ ...lineJson(line), replaced: isReplaced })),
      questions: whole?.answers.map(({ question, forbids, isProven, text }) => ({
        ...{ question, forbids, proven: isProven, text },
      })),
    })),
  };
}

function lineJson({ address, bytes, text }: AssemblyLine): object {
  return { address: hex(address), bytes: hexOf(bytes), text };
}

export function trampolinesText({ scratch, probes }: TrampolineReport): string {
  const { code, data } = scratch;
  return textLines([
    `memory: ${scratch.source}`,
    `  code ${hex(code.address)}, ${code.size} bytes; ring ${hex(data.address)}, ${data.size} bytes`,
    ...probes.flatMap((probe) => ['', ...probeLines(probe)]),
  ]);
}

function probeLines({ name, address, why, patch, displaced, parts, proof, whole }: ProbeLayout): string[] {
  const title = `${name} at ${hex(address)}`;
  const known = whole ? wholeLines(whole, proof) : [];
  if (!patch) return [`${title}: with a stop, because ${why ?? 'it was left out'}`, ...known];
  const how = `${patch.kind} patch of ${patch.length} bytes${patch.hop ? ', by a hop near it' : ''}`;
  const moved = ['  displaced instructions', ...displaced.map((line) => codeLine(line))];
  return [`${title}: ${how}`, ...known, ...moved, ...parts.flatMap(partLines)];
}

const wayTexts: Readonly<Record<Proof['way'], string>> = {
  hook: 'a patch at its start and a hook on its return',
  exits: 'patches at its start and its exits',
  entry: 'a patch at its start',
  inside: 'a patch at a place inside',
};

/** The function, with a mark at what is replaced; and what is known that allows it. */
function wholeLines({ lines, answers }: WholeCode, proof: Proof | undefined): string[] {
  const width = Math.max(...answers.map(({ question }) => question.length));
  return [
    '  its code; > is replaced',
    ...lines.map(({ line, isReplaced }) => codeLine(line, isReplaced ? '  > ' : undefined)),
    proof ? `  proof of ${wayTexts[proof.way]}` : '  proof',
    ...answers.map(({ question, forbids, isProven, text }) => {
      const answer = isProven ? text : `no ${forbids}: ${text}`;
      return `    ${question.padEnd(width)}  ${answer}`;
    }),
  ];
}

const titles: Readonly<Record<CodePart['part'], string>> = {
  patch: 'patch',
  hop: 'hop',
  entry: 'trampoline of the entry',
  exit: 'trampoline of the return',
  'patch at end': 'patch at an end',
  end: 'trampoline of an end',
};

function partLines({ part, address, lines }: CodePart): string[] {
  return [`  ${titles[part]}, ${hex(address)}`, ...lines.map((line) => codeLine(line))];
}

function codeLine({ address, bytes, text }: AssemblyLine, indent = '    '): string {
  return `${indent}${address.toString(16)}:  ${hexOf(bytes).padEnd(16)}  ${text}`;
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
