/** Whether a command line asks for JSON, also where it is wrong. */
export function asksForJson(words: readonly string[]): boolean {
  return words.some((word) => /^--json(?:=|$)/.test(word));
}
