/** Everything that these lead to, themselves included. */
export function reachedFrom<T>(from: Iterable<T>, next: (at: T) => Iterable<T>): Set<T> {
  const found = new Set(from);
  // What is added during the loop is visited by it.
  for (const at of found) for (const to of next(at)) found.add(to);
  return found;
}
