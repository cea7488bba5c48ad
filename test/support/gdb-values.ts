// gdb as the oracle for values: its `output` of expressions at a stop, and our values written the way gdb writes them.
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Value } from '../../src/values/index.js';

const setup = [
  'set pagination off',
  'set confirm off',
  'set width 0',
  'set print elements unlimited',
  'set print repeats unlimited',
  'set print symbol off',
  'set print max-depth unlimited',
  'set language rust',
  // A name that the function which is inlined here does not know may be one of those around it.
  `python
def rsptrace_show(expression):
    frame = gdb.newest_frame()
    while True:
        frame.select()
        try:
            print(gdb.execute('output ' + expression, to_string=True))
            return
        except gdb.error as error:
            if frame.type() != gdb.INLINE_FRAME or 'No symbol' not in str(error):
                print('error: ' + str(error))
                return
        frame = frame.older()
end`,
];

/**
 * Runs gdb on a stub and leaves the target stopped. `go`: commands that bring it somewhere; then each expression is printed.
 * What gdb cannot print is its message, with `error: ` in front. Asynchronous, so that the guest's console is read meanwhile.
 */
export async function gdbPrint(
  folder: string,
  elf: string,
  socket: string,
  go: readonly string[],
  expressions: readonly string[] = [],
): Promise<string[]> {
  const script = join(folder, 'values.gdb');
  const asked = expressions.flatMap((e, i) => [`echo \\n@${i}@`, `python rsptrace_show(${JSON.stringify(e)})`]);
  writeFileSync(
    script,
    [...setup, `file ${elf}`, `target remote ${socket}`, ...go, ...asked, 'echo \\n@end@', 'disconnect'].join('\n'),
  );
  // QEMU makes its socket a moment after it was started.
  for (let tries = 0; !existsSync(socket) && tries < 500; tries++) await setTimeout(20);
  const { stdout: out } = await promisify(execFile)('gdb-multiarch', ['-nx', '-batch', '-x', script], {
    encoding: 'utf8',
    timeout: 60_000,
    maxBuffer: 1 << 28,
  });
  if (!out.includes('@end@')) throw new Error(`gdb stopped early:\n${out}`);
  return expressions.map((_, i) => {
    const from = out.indexOf(`@${i}@`) + `@${i}@`.length;
    const to = out.indexOf(i + 1 < expressions.length ? `@${i + 1}@` : '@end@');
    return out.slice(from, to).trim();
  });
}

/** A value read with `raw` as gdb 13 writes it in Rust. */
export function asGdb(value: Value): string {
  switch (value.kind) {
    case 'integer':
    case 'bool':
      return String(value.value);
    case 'float':
      return String(value.value);
    case 'char':
      return `${value.value.codePointAt(0)} '${value.value}'`;
    case 'enumerator':
      return `${value.type}::${value.name}`;
    case 'text':
      return JSON.stringify(value.text);
    case 'struct': {
      const { type, form, variant, fields } = value;
      if (type === '()') return '()';
      const inner = fields.map((f) => (form === 'tuple' ? asGdb(f.value) : `${f.name}: ${asGdb(f.value)}`)).join(', ');
      const name = variant === undefined ? type : `${type}::${variant}`;
      if (form === 'tuple')
        return type.startsWith('(') ? `(${inner})` : `${name}${variant === undefined ? ' ' : ''}(${inner})`;
      if (fields.length === 0) return name;
      return form === 'union' || variant !== undefined ? `${name}{${inner}}` : `${name} {${inner}}`;
    }
    case 'sequence':
      return `[${value.elements.map(asGdb).join(', ')}]`;
    case 'pointer': {
      const address = `0x${value.address.toString(16)}`;
      if (value.target?.kind === 'sequence') return `${value.type} ${asGdb(value.target)}`;
      if (value.dyn === undefined) return address;
      return `${value.type} {pointer: ${address}, vtable: 0x${value.dyn.vtable.toString(16)}}`;
    }
    case 'optimized-out':
      return '<optimized out>';
    default:
      return `<${value.kind}>`;
  }
}

/** The types of a value and of all that it holds. */
export function typesIn(value: Value, into = new Set<string>()): Set<string> {
  into.add(value.type);
  if (value.kind === 'struct') for (const field of value.fields) typesIn(field.value, into);
  if (value.kind === 'sequence') for (const element of value.elements) typesIn(element, into);
  if ((value.kind === 'pointer' && value.target) || value.kind === 'wrapper') {
    const inner = value.kind === 'pointer' ? value.target : value.value;
    if (inner) typesIn(inner, into);
  }
  return into;
}
