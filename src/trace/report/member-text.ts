const openers = '({[';
const closers = ')}]';

/**
 * A member of a value that was printed as Rust prints it: `id` of `Header { id: 3, len: 4 }`, `0` of `Some(7)` or of
 * `(1, 2)`. Undefined if there is none.
 */
export function memberText(text: string, member: string): string | undefined {
  const open = text.search(/[({[]/);
  if (open < 0) return undefined;
  const parts = partsOf(text.slice(open + 1));
  if (/^\d+$/.test(member)) return parts[Number(member)]?.replace(/^\w+: /, '');
  for (const part of parts) if (part.startsWith(`${member}: `)) return part.slice(member.length + 2);
  return undefined;
}

/** What stands between commas, up to the bracket that closes. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  let [depth, from, quote] = [0, 0, ''];
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] as string;
    if (quote !== '') {
      if (letter === '\\') at++;
      else if (letter === quote) quote = '';
    } else if (letter === '"') quote = letter;
    else if (openers.includes(letter)) depth++;
    else if (closers.includes(letter)) {
      if (depth-- === 0) return [...parts, text.slice(from, at).trim()];
    } else if (letter === ',' && depth === 0) {
      parts.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return parts;
}
