/** `1 probe`, `2 probes`. */
export function plural(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
