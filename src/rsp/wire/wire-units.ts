/** The longest unit kept: a packet that does not end is passed on in pieces. */
const LONGEST = 4 * 1024 * 1024;

/**
 * Cuts one direction of a wire into units, whatever chunks it came in. A unit is a whole packet with frame and sum
 * (`$g#67`), a notification (`%...#..`), a single `+`, `-` or `\x03`, or a run of anything else. Works on latin-1
 * text.
 */
export class WireUnits {
  #rest = '';

  /** Takes the next bytes; returns the units that are complete now. */
  push(text: string): string[] {
    const all = this.#rest === '' ? text : this.#rest + text;
    const units: string[] = [];
    let at = 0;
    while (at < all.length) {
      const end = endOf(all, at);
      if (end === undefined) break;
      units.push(all.slice(at, end));
      at = end;
    }
    this.#rest = all.slice(at);
    if (this.#rest.length > LONGEST) units.push(this.rest());
    return units;
  }

  /** What has come of a packet that never ended. */
  rest(): string {
    const rest = this.#rest;
    this.#rest = '';
    return rest;
  }
}

/** Where the unit that starts at `at` ends; undefined when that has not come yet. */
function endOf(text: string, at: number): number | undefined {
  const first = text[at];
  if (first === '+' || first === '-' || first === '\x03') return at + 1;
  if (first === '$' || first === '%') {
    const hash = text.indexOf('#', at);
    const restart = text.indexOf('$', at + 1);
    if (restart >= 0 && (hash < 0 || restart < hash)) return restart;
    return hash < 0 || hash + 3 > text.length ? undefined : hash + 3;
  }
  let end = at + 1;
  while (end < text.length && !'+-$%\x03'.includes(text[end] as string)) end++;
  return end;
}
