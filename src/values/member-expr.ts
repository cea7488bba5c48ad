// The language of member expressions, Rust's with a little of C's:
//
//   expr    := unary { 'as' type }
//   unary   := '*' unary | '&' [ 'mut' ] unary | '-' unary | '(' type ')' unary | postfix
//   postfix := primary { '.' (name | number) | '->' name | '[' expr ']' | '[' [expr] '..' [expr] ']' }
//   primary := path | number | '(' expr ')'
//   type    := '*' ('const' | 'mut') type | '&' ['mut'] type | '[' type [ ';' number ] ']' | [ 'dyn' ] path
//              C's: path '*'...
//   path    := [ '::' ] part { '::' part }
//   part    := name or a `{...}` that the compiler made up, with <generic arguments>
//
// `(T)x` is a cast only if T ends in `*`, because then it cannot be anything else. Refused: calls, arithmetic,
// assignments.
import { RsptraceError } from '../base/errors.js';

export type MemberExpr =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'number'; readonly value: bigint }
  | { readonly kind: 'deref'; readonly of: MemberExpr }
  | { readonly kind: 'address'; readonly of: MemberExpr }
  | { readonly kind: 'negate'; readonly of: MemberExpr }
  | { readonly kind: 'member'; readonly of: MemberExpr; readonly name: string }
  | { readonly kind: 'index'; readonly of: MemberExpr; readonly index: MemberExpr }
  | {
      readonly kind: 'range';
      readonly of: MemberExpr;
      readonly from: MemberExpr | undefined;
      readonly to: MemberExpr | undefined;
    }
  | { readonly kind: 'cast'; readonly of: MemberExpr; readonly type: TypeExpr };

export type TypeExpr =
  | { readonly kind: 'named'; readonly name: string }
  /** `mark`: `*const `, `*mut `, `&` or `&mut `. */
  | { readonly kind: 'pointer'; readonly mark: string; readonly to: TypeExpr }
  | { readonly kind: 'array'; readonly of: TypeExpr; readonly count: number | undefined };

const MAX_LENGTH = 4096;
const MAX_DEPTH = 64;

/** Reads an expression. Throws `EXPRESSION_SYNTAX`, with the place. */
export function parseMemberExpr(text: string): MemberExpr {
  return new Parser(text).whole();
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
    if (text.length > MAX_LENGTH) throw this.#error(`it is longer than ${MAX_LENGTH} characters`);
  }

  whole(): MemberExpr {
    const found = this.#expr();
    this.#space();
    if (this.#at < this.#text.length) throw this.#error('nothing more was expected');
    return found;
  }

  #error(what: string): RsptraceError {
    const rest = this.#text.slice(this.#at, this.#at + 20);
    const where = rest === '' ? 'at its end' : `at '${rest}'`;
    return new RsptraceError(
      'EXPRESSION_SYNTAX',
      `the expression '${this.#text.slice(0, 200)}' is wrong ${where}: ${what}`,
      {
        hint: 'write self.header.id, (*p).next, a[3], &x, p as *const T, or crate::module::STATIC',
      },
    );
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at++;
  }

  /** Takes a mark if it is next. */
  #take(mark: string): boolean {
    this.#space();
    if (!this.#text.startsWith(mark, this.#at)) return false;
    this.#at += mark.length;
    return true;
  }

  /** Takes a word if it is next, whole. */
  #word(word: string): boolean {
    this.#space();
    const found = /^[\p{L}\p{N}_]+/u.exec(this.#text.slice(this.#at))?.[0];
    if (found !== word) return false;
    this.#at += word.length;
    return true;
  }

  #need(mark: string): void {
    if (!this.#take(mark)) throw this.#error(`'${mark}' was expected`);
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw this.#error('it nests too deep');
    const found = read();
    this.#depth--;
    return found;
  }

  #expr(): MemberExpr {
    return this.#nested(() => {
      let found = this.#unary();
      while (this.#word('as')) found = { kind: 'cast', of: found, type: this.#type() };
      return found;
    });
  }

  #unary(): MemberExpr {
    return this.#nested(() => {
      if (this.#take('*')) return { kind: 'deref', of: this.#unary() };
      if (this.#take('&')) {
        this.#word('mut');
        return { kind: 'address', of: this.#unary() };
      }
      if (this.#take('-')) return { kind: 'negate', of: this.#unary() };
      const type = this.#cCast();
      if (type !== undefined) return { kind: 'cast', of: this.#unary(), type };
      return this.#postfix();
    });
  }

  /** `(T*)`, where it is next and something to cast follows. */
  #cCast(): TypeExpr | undefined {
    const start = this.#at;
    if (this.#take('(') && !this.#starts('*') && !this.#starts('&')) {
      try {
        this.#word('struct');
        let type: TypeExpr = { kind: 'named', name: this.#path() };
        let stars = 0;
        while (this.#take('*')) {
          type = { kind: 'pointer', mark: '*mut ', to: type };
          stars++;
        }
        if (stars > 0 && this.#take(')')) return type;
      } catch (error) {
        if (!(error instanceof RsptraceError)) throw error;
      }
    }
    this.#at = start;
    return undefined;
  }

  #starts(mark: string): boolean {
    this.#space();
    return this.#text.startsWith(mark, this.#at);
  }

  #postfix(): MemberExpr {
    let found = this.#primary();
    // A chain nests as deep as it is long.
    for (let length = 0; ; length++) {
      if (length > MAX_DEPTH * 4) throw this.#error('it is too long a chain');
      if (this.#take('->')) found = { kind: 'member', of: { kind: 'deref', of: found }, name: this.#memberName() };
      else if (!this.#starts('..') && this.#take('.')) found = { kind: 'member', of: found, name: this.#memberName() };
      else if (this.#take('[')) found = this.#subscript(found);
      else return found;
    }
  }

  #subscript(of: MemberExpr): MemberExpr {
    const from = this.#starts('..') ? undefined : this.#expr();
    if (this.#take('..')) {
      const to = this.#starts(']') ? undefined : this.#expr();
      this.#need(']');
      return { kind: 'range', of, from, to };
    }
    this.#need(']');
    if (from === undefined) throw this.#error('an index was expected');
    return { kind: 'index', of, index: from };
  }

  #memberName(): string {
    this.#space();
    const found = /^(?:[\p{L}\p{N}_$]+|\{[^{}]*\})/u.exec(this.#text.slice(this.#at))?.[0];
    if (found === undefined) throw this.#error("a member's name was expected");
    this.#at += found.length;
    return found;
  }

  #primary(): MemberExpr {
    if (this.#take('(')) {
      const found = this.#expr();
      this.#need(')');
      return found;
    }
    const number = this.#number();
    return number !== undefined ? { kind: 'number', value: number } : { kind: 'path', path: this.#path() };
  }

  #number(): bigint | undefined {
    this.#space();
    const found =
      /^(0[xX][0-9a-fA-F_]+|0b[01_]+|0o[0-7_]+|[0-9][0-9_]*)(?:[iu](?:8|16|32|64|128|size))?(?![\p{L}\p{N}_])/u.exec(
        this.#text.slice(this.#at),
      );
    const digits = found?.[1]?.replaceAll('_', '');
    if (found === null || digits === undefined || /^0[xXbo]$/.test(digits)) return undefined;
    const value = BigInt(digits.toLowerCase());
    if (value >> 128n) throw this.#error('the number has more than 128 bits');
    this.#at += found[0].length;
    return value;
  }

  #path(): string {
    this.#take('::');
    const parts: string[] = [];
    do parts.push(this.#part());
    while (this.#take('::'));
    return parts.join('::');
  }

  /**
   * `Vec<u8, alloc::alloc::Global>`, `{impl#0}`, `<T as Trait>`; of the generic arguments, whatever is between the
   * brackets.
   */
  #part(): string {
    this.#space();
    const rest = this.#text.slice(this.#at);
    const own = /^(?:[\p{L}_$][\p{L}\p{N}_$]*|\{[^{}]*\})/u.exec(rest)?.[0] ?? '';
    if (own === '' && !rest.startsWith('<')) throw this.#error('a name was expected');
    this.#at += own.length;
    return own + (this.#text[this.#at] === '<' ? this.#brackets() : '');
  }

  #brackets(): string {
    const start = this.#at;
    let depth = 0;
    for (; this.#at < this.#text.length; this.#at++) {
      const c = this.#text[this.#at];
      if (c === '<') depth++;
      else if (c === '>' && this.#text[this.#at - 1] !== '-' && --depth === 0) {
        this.#at++;
        return this.#text.slice(start, this.#at);
      }
    }
    this.#at = start;
    throw this.#error("a '>' is missing");
  }

  #type(): TypeExpr {
    return this.#nested((): TypeExpr => {
      if (this.#take('*')) {
        const mark = this.#word('const') ? '*const ' : this.#word('mut') ? '*mut ' : undefined;
        if (mark === undefined) throw this.#error("'const' or 'mut' was expected");
        return { kind: 'pointer', mark, to: this.#type() };
      }
      if (this.#take('&')) {
        const mark = this.#word('mut') ? '&mut ' : '&';
        return { kind: 'pointer', mark, to: this.#type() };
      }
      if (this.#take('[')) {
        const of = this.#type();
        const count = this.#take(';') ? this.#number() : undefined;
        this.#need(']');
        return { kind: 'array', of, count: count === undefined ? undefined : Number(count) };
      }
      return { kind: 'named', name: this.#word('dyn') ? `dyn ${this.#path()}` : this.#path() };
    });
  }
}

/** A type as Rust writes it. */
export function typeText(type: TypeExpr): string {
  switch (type.kind) {
    case 'named':
      return type.name;
    case 'pointer':
      return `${type.mark}${typeText(type.to)}`;
    case 'array':
      return type.count === undefined ? `[${typeText(type.of)}]` : `[${typeText(type.of)}; ${type.count}]`;
  }
}

/** An expression as it may have been written, for messages. */
export function textOf(e: MemberExpr): string {
  switch (e.kind) {
    case 'path':
      return e.path;
    case 'number':
      return e.value.toString();
    case 'deref':
      return `(*${textOf(e.of)})`;
    case 'address':
      return `&${textOf(e.of)}`;
    case 'negate':
      return `-${textOf(e.of)}`;
    case 'member':
      return `${textOf(e.of)}.${e.name}`;
    case 'index':
      return `${textOf(e.of)}[${textOf(e.index)}]`;
    case 'range':
      return `${textOf(e.of)}[${e.from ? textOf(e.from) : ''}..${e.to ? textOf(e.to) : ''}]`;
    case 'cast':
      return `(${textOf(e.of)} as ${typeText(e.type)})`;
  }
}
