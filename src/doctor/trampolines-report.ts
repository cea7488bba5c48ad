// What `rsptrace doctor --trampolines` prints, for a person and as JSON: docs/doctor.md.
import type { AssemblyLine } from '../arch/index.js';
import { hex } from '../base/addr.js';
import type { Proof } from '../proof/index.js';
import type { Region } from '../scratch/index.js';
import { textLines } from '../text/index.js';
import type { CodePart, ProbeLayout, TrampolineReport, WholeCode } from './trampolines.js';

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
