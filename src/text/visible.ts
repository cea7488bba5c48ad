// Text from elsewhere (names in an ELF, in a target's memory, from a stub) that a person is to see. A terminal obeys
// control characters, a newline forges a line of ours, and marks of direction show text in another order than it has.

/** What most text is made of. */
const PLAIN = /^[ -~]*$/;
/**
 * Unicode's "other" characters (control, format, surrogate, private, unassigned), its separators of lines and
 * paragraphs, and others that have no shape. The selector that makes a picture of a sign is seen by that.
 */
const HIDDEN =
  /(?!(?<=(?!\p{Emoji_Presentation})\p{Extended_Pictographic})\ufe0f)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
/** Of these, what JSON.stringify leaves as it is and a terminal does not. */
const HIDDEN_IN_JSON =
  /(?!(?<=(?!\p{Emoji_Presentation})\p{Extended_Pictographic})\ufe0f)[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\0': '\\0' };

/** The text on one line, with what cannot be seen written out as Rust does: `\n`, `\u{1b}`, `\u{202e}`. */
export function visible(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(HIDDEN, (c) => short[c] ?? `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

/** The same of a text of several lines, which stay. */
export function visibleLines(text: string): string {
  return text.split(/\r?\n/).map(visible).join('\n');
}

/** Each text as a line of its own, whatever is in it. */
export function textLines(lines: readonly string[]): string {
  return lines.map((line) => `${visible(line)}\n`).join('');
}

/** JSON on one line. It holds the same text as JSON.stringify's; what cannot be seen stands in it as `\u202e`. */
export function jsonLine(value: unknown): string {
  return `${visibleJson(JSON.stringify(value))}\n`;
}

/** JSON that was made elsewhere, with what cannot be seen as `\u202e`. */
export function visibleJson(json: string): string {
  if (PLAIN.test(json)) return json;
  return json.replace(HIDDEN_IN_JSON, (c) =>
    [...Array(c.length).keys()].map((i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}
