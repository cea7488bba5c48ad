// What `rsptrace doctor --trampolines` prints, for a person and as JSON: docs/doctor.md.
import type { AssemblyLine } from '../arch/index.js';
import { hex } from '../base/addr.js';
import type { Region } from '../scratch/index.js';
import { textLines } from '../text/index.js';
import type { CodePart, ProbeLayout, TrampolineReport } from './trampolines.js';

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
    probes: probes.map(({ name, address, why, patch, displaced, parts }) => ({
      name,
      address: hex(address),
      why: why ?? null,
      patch: patch ?? null,
      displaced: displaced.map(lineJson),
      parts: parts.map(({ part, address, lines }) => ({ part, address: hex(address), code: lines.map(lineJson) })),
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

function probeLines({ name, address, why, patch, displaced, parts }: ProbeLayout): string[] {
  const title = `${name} at ${hex(address)}`;
  if (!patch) return [`${title}: with a stop, because ${why ?? 'it was left out'}`];
  const how = `${patch.kind} patch of ${patch.length} bytes${patch.hop ? ', by a hop near it' : ''}`;
  return [`${title}: ${how}`, '  displaced instructions', ...displaced.map(codeLine), ...parts.flatMap(partLines)];
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
  return [`  ${titles[part]}, ${hex(address)}`, ...lines.map(codeLine)];
}

function codeLine({ address, bytes, text }: AssemblyLine): string {
  return `    ${address.toString(16)}:  ${hexOf(bytes).padEnd(16)}  ${text}`;
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
