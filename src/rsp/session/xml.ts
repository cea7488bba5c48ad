/*
 * XML 1.0 (fifth edition), the part that stubs send. Read: elements, attributes, character data, CDATA, the five named
 * entities and character references. Passed over: comments, processing instructions, a DOCTYPE without declarations.
 * Refused: entity declarations, nesting beyond 32, tags that do not match.
 */

import { RsptraceError } from '../../base/errors.js';

interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  /** Character data directly inside, trimmed. */
  readonly text: string;
}

/** Elements in document order: each is opened before its content and closed after it. */
interface XmlHandler {
  open?(element: Omit<XmlElement, 'text'>): void;
  close?(element: XmlElement): void;
}

const DEEPEST = 32;
const NAME = /[A-Za-z_:][\w:.-]*/y;
const ATTRIBUTE = /\s+([A-Za-z_:][\w:.-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;
const TAG_END = /\s*(\/?)>/y;
const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

/** Walks through a document; `what` names it in errors (`RSP_BAD_XML`). */
export function readXml(text: string, what: string, handler: XmlHandler): void {
  const open: (Omit<XmlElement, 'text'> & { text: string })[] = [];
  let at = 0;
  let roots = 0;
  const bad = (why: string): RsptraceError =>
    new RsptraceError('RSP_BAD_XML', `The stub's ${what} is damaged at offset ${at}: ${why}`);
  const after = (mark: string, from: number): number => {
    const found = text.indexOf(mark, from);
    if (found < 0) throw bad(`no "${mark}"`);
    return found + mark.length;
  };
  const closing = (): void => {
    NAME.lastIndex = at + 2;
    const name = NAME.exec(text)?.[0];
    const element = open.pop();
    if (element === undefined || element.name !== name) throw bad('a closing tag that closes nothing');
    at = after('>', at);
    handler.close?.({ ...element, text: element.text.trim() });
  };
  const opening = (): void => {
    NAME.lastIndex = at + 1;
    const name = NAME.exec(text)?.[0];
    if (name === undefined) throw bad('a tag without a name');
    if (open.length >= DEEPEST) throw bad(`more than ${DEEPEST} elements in each other`);
    if (open.length === 0 && roots++ > 0) throw bad('a second root element');
    const { attributes, end } = readAttributes(text, at + 1 + name.length, bad);
    TAG_END.lastIndex = end;
    const close = TAG_END.exec(text);
    if (close === null) throw bad(`tag "${name}" does not end`);
    at = TAG_END.lastIndex;
    handler.open?.({ name, attributes });
    if (close[1] === '/') handler.close?.({ name, attributes, text: '' });
    else open.push({ name, attributes, text: '' });
  };
  while (at < text.length) {
    const tag = text.indexOf('<', at);
    if (tag < 0) break;
    const top = open.at(-1);
    if (top !== undefined) top.text += decodeEntities(text.slice(at, tag), bad);
    at = tag;
    if (text.startsWith('<!--', at)) at = after('-->', at + 4);
    else if (text.startsWith('<?', at)) at = after('?>', at);
    else if (text.startsWith('<![CDATA[', at)) {
      const end = after(']]>', at);
      if (top !== undefined) top.text += text.slice(at + 9, end - 3);
      at = end;
    } else if (text.startsWith('<!', at)) {
      const end = after('>', at);
      if (!text.startsWith('<!DOCTYPE', at) || text.slice(at, end).includes('[')) throw bad('a declaration');
      at = end;
    } else if (text.startsWith('</', at)) closing();
    else opening();
  }
  at = text.length;
  if (open.length > 0) throw bad(`"${open.at(-1)?.name}" is not closed`);
  if (roots === 0) throw bad('no element');
}

/** The attributes from an offset on, and where they end. */
function readAttributes(
  text: string,
  from: number,
  bad: (why: string) => RsptraceError,
): { readonly attributes: ReadonlyMap<string, string>; readonly end: number } {
  const attributes = new Map<string, string>();
  for (let end = from; ; end = ATTRIBUTE.lastIndex) {
    ATTRIBUTE.lastIndex = end;
    const match = ATTRIBUTE.exec(text);
    if (match === null) return { attributes, end };
    attributes.set(match[1] as string, decodeEntities(match[2] ?? match[3] ?? '', bad));
  }
}

function decodeEntities(text: string, bad: (why: string) => RsptraceError): string {
  if (!text.includes('&')) return text;
  return text.replace(/&([^;\s]{0,10};?)/g, (_, body: string) => {
    const name = body.endsWith(';') ? body.slice(0, -1) : '';
    const number = /^#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}))$/.exec(name);
    if (number !== null) {
      const code = number[1] === undefined ? Number(number[2]) : Number.parseInt(number[1], 16);
      if (code > 0 && code <= 0x10ffff) return String.fromCodePoint(code);
    }
    const named = Object.hasOwn(NAMED, name) ? NAMED[name] : undefined;
    if (named === undefined) throw bad(`the entity "&${body}" is not known`);
    return named;
  });
}
