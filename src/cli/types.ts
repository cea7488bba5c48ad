import { hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { DebugInfo } from '../dwarf/index.js';
import { ElfFile } from '../elf/index.js';
import { shownFile, visible, visibleJson } from '../text/index.js';
import { type DescribedMember, type DescribedType, describeType, ProgramNames } from '../values/index.js';
import { ExitCode } from './failure.js';
import { createLogger } from './logging.js';
import { debugFilesOf } from './options/common.js';
import type { TypesArguments } from './options/target.js';

/** More than anybody reads. */
const MAX_MATCHES = 200;

/** `rsptrace types kernel.elf TYPE`: a type's layout. Gives the exit status. */
export async function showTypes(args: TypesArguments): Promise<number> {
  const logger = createLogger('warn');
  const debug = DebugInfo.load(await ElfFile.open(args.elf, { ...debugFilesOf(args), logger }), { logger });
  const names = new ProgramNames(debug);
  const found = names.types(args.type);
  if (found.length === 0) {
    const like = names.typesLike(args.type);
    throw new RsptraceError('TYPE_UNKNOWN', `${args.elf} has no type ${args.type}`, {
      hint:
        like.length > 0 ? `did you mean ${like.join(', ')}?` : 'give the name as Rust writes it: exec::Task, Vec<u8>',
    });
  }
  const described = found.slice(0, MAX_MATCHES).map(({ name, die }) => describeType(die, name));
  if (args.json) {
    const json = {
      version: 1,
      program: args.elf,
      query: args.type,
      matches: found.length,
      types: described.map(typeJson),
    };
    process.stdout.write(`${visibleJson(JSON.stringify(json, plain))}\n`);
  } else if (new Set(described.map((t) => t.name)).size > 1) {
    process.stdout.write(`${listText(described)}\n${found.length} types are called that: give one of these names\n`);
  } else {
    process.stdout.write(`${described.map(typeText).join('\n\n')}\n`);
  }
  return ExitCode.recorded;
}

function listText(types: readonly DescribedType[]): string {
  const width = Math.max(...types.map((t) => sizeText(t.size).length), 4);
  const rows = types.map((t) => `${sizeText(t.size).padStart(width)}  ${t.kind.padEnd(6)}  ${t.name}`);
  return [`${'size'.padStart(width)}  kind    name`, ...rows].map(visible).join('\n');
}

function sizeText(size: number | undefined): string {
  return size === undefined ? '?' : String(size);
}

function bytes(size: number | undefined): string {
  return size === undefined ? 'size unknown' : size === 1 ? '1 byte' : `${size} bytes`;
}

/** A type as text: one line per member, `offset  size  name: type`, in the order of their places. */
export function typeText(type: DescribedType): string {
  const align = type.align === undefined ? '' : `, align ${type.align}`;
  const place =
    type.file === undefined ? '' : `  ${shownFile(type.file)}${type.line === undefined ? '' : `:${type.line}`}`;
  const head = `${type.kind === 'other' || type.kind === 'alias' ? 'type' : type.kind} ${type.name}`;
  const lines = [
    `${head}${type.target === undefined ? '' : ` = ${type.target}`}  (${bytes(type.size)}${align})${place}`,
  ];
  const rows: Row[] = type.members.map(memberRow);
  if (type.discriminant !== undefined) {
    const { offset, size, type: of } = type.discriminant;
    rows.push({ offset, size: String(size), text: `(discriminant)${of === undefined ? '' : `: ${of}`}` });
  }
  rows.push(...type.holes.map(holeRow));
  lines.push(...rowLines(rows, '  '));
  for (const variant of type.variants) {
    const line = variant.line === undefined ? '' : `  ${shownFile(variant.file ?? '')}:${variant.line}`;
    lines.push(`  ${variant.name} = ${valuesText(variant.values)}${line}`);
    lines.push(...rowLines([...variant.members.map(memberRow), ...variant.holes.map(holeRow)], '    '));
  }
  for (const { name, value } of type.enumerators) lines.push(`  ${name} = ${value}`);
  const lost = type.holes.reduce((sum, hole) => sum + hole.size, 0);
  if (lost > 0) lines.push(`  ${bytes(lost)} in ${type.holes.length === 1 ? 'a hole' : `${type.holes.length} holes`}`);
  return lines.map(visible).join('\n');
}

interface Row {
  readonly offset: number;
  readonly size: string;
  readonly text: string;
}

function memberRow(member: DescribedMember): Row {
  const { bits } = member;
  const size = bits === undefined ? sizeText(member.size) : `:${bits.size}`;
  const at = bits === undefined || bits.offset === 0 ? '' : `  (from bit ${bits.offset})`;
  return {
    offset: member.offset,
    size,
    text: `${member.name === '' ? '(unnamed)' : member.name}: ${member.type}${at}`,
  };
}

function holeRow({ offset, size }: { readonly offset: number; readonly size: number }): Row {
  return { offset, size: String(size), text: '(hole)' };
}

function rowLines(rows: readonly Row[], indent: string): string[] {
  const sorted = rows.toSorted((a, b) => a.offset - b.offset);
  return sorted.map(({ offset, size, text }) => `${indent}${String(offset).padStart(5)} ${size.padStart(5)}  ${text}`);
}

function valuesText(values: DescribedType['variants'][number]['values']): string {
  if (values === undefined) return '(any other value)';
  return values
    .map(({ low, high }) => (low === high ? numberText(low) : `${numberText(low)}..=${numberText(high)}`))
    .join(', ');
}

/** Small numbers in decimal, niches in hex. */
function numberText(value: bigint): string {
  return value < 0x1_0000n ? value.toString() : hex(value);
}

/** As it is described. */
function typeJson({ name, kind, members, variants, ...rest }: DescribedType): object {
  const described = variants.map((variant) => ({ ...variant, members: variant.members.map(memberJson) }));
  return { name, kind, ...rest, members: members.map(memberJson), variants: described };
}

function memberJson({ bits, ...member }: DescribedMember): object {
  return bits === undefined ? member : { ...member, bit_offset: bits.offset, bit_size: bits.size };
}

/** What is not known is null, and a number that a double may have no room for is a text. */
function plain(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : (value ?? null);
}
