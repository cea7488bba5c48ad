import { type Addr, hex } from '../base/addr.js';
import type { FieldValue, PointerStyle, PointerValue, SequenceValue, StructValue, Value } from './value.js';

/**
 * A value as Rust's Debug would write it on one line, with a debugger's additions: addresses, counts, and notes on
 * unreadable memory. `Some(Vec(len=3)[1, 2, 3])`, `Arc(strong=2, weak=0)(Task { id: 4, .. })`, `<unreadable 0x10>`.
 */
export function formatValue(value: Value): string {
  switch (value.kind) {
    case 'integer':
      return value.value.toString();
    case 'float':
      return floatText(value.value, value.size);
    case 'bool':
      return String(value.value);
    case 'char':
      return `'${escaped(value.value, "'")}'`;
    case 'enumerator':
      return value.name;
    case 'struct':
      return formatStruct(value);
    case 'sequence':
      // Arrays and slices have no name.
      return `${value.name === '' ? '' : `${value.name}(len=${value.length})`}[${list(value)}]`;
    case 'text':
      return `"${escaped(value.text, '"')}"${value.cut ? '...' : ''}`;
    case 'pointer':
      if (value.target !== undefined) return referenceText(value.style, formatValue(value.target), value.dyn?.trait);
      return pointerText(value.address, value.dyn, value.symbol);
    case 'wrapper': {
      const facts = value.facts.map((f) => `${f.name}=${f.value}`).join(', ');
      if (value.value === undefined) return `${value.name}(${facts})`;
      return `${value.name}${facts === '' ? '' : `(${facts})`}(${formatValue(value.value)})`;
    }
    case 'bytes':
      return `<${value.type}: ${Buffer.from(value.bytes).toString('hex')}>`;
    case 'unreadable':
      return `<unreadable ${hex(value.address)}>`;
    case 'optimized-out':
      return '<optimized out>';
    case 'invalid':
      return `<invalid ${value.type}: ${value.reason}>`;
    case 'cut':
      return value.reason === 'cycle' ? '<itself>' : '..';
  }
}

/** A struct, a tuple or a union. */
function formatStruct({ name, form, fields }: StructValue): string {
  // A tuple of one has a comma behind it.
  if (form === 'tuple')
    return `${name}(${fields.map(({ value }) => formatValue(value)).join(', ')}${name === '' && fields.length === 1 ? ',' : ''})`;
  if (fields.length === 0) return name === '' ? '()' : name;
  return `${name}${name === '' ? '' : ' '}{ ${fields.map(fieldText).join(form === 'union' ? ' | ' : ', ')} }`;
}

function fieldText({ name, value }: FieldValue): string {
  return name === '' ? formatValue(value) : `${name}: ${formatValue(value)}`;
}

/** Runs of equal elements are written once, as an array expression: `0; 64`. */
function list({ elements, length }: SequenceValue): string {
  const texts = elements.map(formatValue);
  const parts: string[] = [];
  let run = 0;
  for (let i = 0; i <= texts.length; i++) {
    if (i > 0 && i < texts.length && texts[i] === texts[i - 1]) {
      run++;
      continue;
    }
    if (i > 0) {
      const text = texts[i - 1] as string;
      if (run >= MIN_RUN) parts.push(`${text}; ${run}`);
      else for (let n = 0; n < run; n++) parts.push(text);
    }
    run = 1;
  }
  if (texts.length < length) parts.push('..');
  return parts.join(', ');
}

const MIN_RUN = 8;

/** Text that has nothing to escape. */
const plain = /^[ !#-&(-[\]-~]*$/;

/** A pointer and what it points to. `dyn`: the trait, of a pointer to a trait object. */
function referenceText(style: PointerStyle, target: string, dyn?: string): string {
  const trait = dyn === undefined ? '' : `dyn ${lastOf(dyn)}`;
  if (style === 'box') return dyn === undefined ? `Box(${target})` : `Box<${trait}>(${target})`;
  const mark = style === 'mut' ? '&mut ' : '&';
  return dyn === undefined ? `${mark}${target}` : `${mark}${trait}(${target})`;
}

/** A pointer that was not followed. */
function pointerText(address: Addr, dyn?: PointerValue['dyn'], symbol?: string): string {
  if (dyn === undefined) return symbol === undefined ? hex(address) : `${hex(address)} <${symbol}>`;
  const concrete = dyn.concrete ?? `vtable ${hex(dyn.vtable)}`;
  return `dyn ${lastOf(dyn.trait)}(${hex(address)}: ${concrete})`;
}

/** `core::future::future::Future<Output=u64> + core::marker::Send` is `Future<Output=u64>`. */
function lastOf(traits: string): string {
  const path = traits.replace(/(?: \+ [\w:]+)+$/, '');
  const generic = path.indexOf('<');
  const end = generic < 0 ? path.length : generic;
  return path.slice(path.lastIndexOf('::', end) + (path.lastIndexOf('::', end) < 0 ? 1 : 2));
}

/** As Rust's `{:?}` writes it: the shortest digits that give the same number, with a point or an exponent. */
function floatText(value: number, size: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf';
  if (Object.is(value, -0)) return '-0.0';
  const magnitude = Math.abs(value);
  const digits = size === 4 ? shortest(value) : String(value);
  if (magnitude !== 0 && (magnitude < 1e-5 || magnitude >= 1e16)) {
    return Number(digits).toExponential().replace('e+', 'e');
  }
  return /[.e]/.test(digits) ? digits : `${digits}.0`;
}

function shortest(value: number): string {
  for (let precision = 1; precision < 9; precision++) {
    const text = Number(value.toPrecision(precision));
    if (Math.fround(text) === value) return String(text);
  }
  return String(Number(value.toPrecision(9)));
}

/** As Rust's `escape_debug`, without its rules for combining characters. */
function escaped(text: string, quote: string): string {
  if (plain.test(text)) return text;
  let out = '';
  for (const c of text) {
    if (c === quote || c === '\\') out += `\\${c}`;
    else if (c === '\n') out += '\\n';
    else if (c === '\r') out += '\\r';
    else if (c === '\t') out += '\\t';
    else if (c === '\0') out += '\\0';
    else if (/\p{C}/u.test(c)) out += `\\u{${c.codePointAt(0)?.toString(16)}}`;
    else out += c;
  }
  return out;
}

/** The value as plain JSON: integers as text (they may have 128 bits), addresses as `0x...`, bytes in hex. */
export function valueJson(value: Value): unknown {
  switch (value.kind) {
    case 'integer':
    case 'enumerator':
      return { ...value, value: value.value.toString() };
    case 'float':
      return { kind: value.kind, type: value.type, value: floatText(value.value, value.size) };
    case 'struct':
      return { ...value, fields: value.fields.map((f) => ({ name: f.name, value: valueJson(f.value) })) };
    case 'sequence':
      return { ...value, elements: value.elements.map(valueJson) };
    case 'pointer': {
      const { dyn } = value;
      return {
        ...value,
        address: hex(value.address),
        target: value.target && valueJson(value.target),
        dyn: dyn && { ...dyn, vtable: hex(dyn.vtable) },
      };
    }
    case 'wrapper':
      return { ...value, value: value.value && valueJson(value.value) };
    case 'bytes':
      return { ...value, bytes: Buffer.from(value.bytes).toString('hex') };
    case 'unreadable':
      return { ...value, address: hex(value.address) };
    default:
      return value;
  }
}

/**
 * A value without what was not read of it. A pointer to that is its address, and a collection keeps its length.
 * Undefined if nothing of it was read.
 */
export function brief(value: Value): Value | undefined {
  switch (value.kind) {
    case 'unreadable':
      return undefined;
    case 'cut':
      return value.reason === 'cycle' ? value : undefined;
    case 'pointer':
      return value.target === undefined ? value : { ...value, target: brief(value.target) };
    case 'sequence': {
      const elements = value.elements.map(brief);
      const end = elements.indexOf(undefined);
      return { ...value, elements: elements.slice(0, end < 0 ? undefined : end) as readonly Value[] };
    }
    case 'struct': {
      const fields = value.fields.map((field) => {
        const short = brief(field.value) ?? { kind: 'cut', type: field.value.type, reason: 'size' };
        return short === field.value ? field : { ...field, value: short };
      });
      return fields.every((field, i) => field === value.fields[i]) ? value : { ...value, fields };
    }
    case 'wrapper':
      return value.value === undefined ? value : { ...value, value: brief(value.value) };
    default:
      return value;
  }
}
