/** Units of time, in nanoseconds. */
export const nanos = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 } as const;
type Unit = keyof typeof nanos;

/** `1.5ms`, `2 s`, with one of these units, in nanoseconds; a number alone is in seconds, where `bare` allows it. */
export function timeOf(words: string, units: readonly Unit[], bare = false): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?) ?([a-z]*)$/.exec(words.trim()) ?? [];
  const known = unit === '' && bare ? 's' : units.find((one) => one === unit);
  return known && Number(number) * nanos[known];
}
