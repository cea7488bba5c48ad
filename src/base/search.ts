/**
 * The words most like one that is not known, for "did you mean": nearest first, at most `count`. A word is like another
 * that it begins with, and like one from which at most a third of its letters differ.
 */
export function nearestWords(wanted: string, words: Iterable<string>, count = 3): string[] {
  const most = Math.ceil(wanted.length / 3);
  const scored: { readonly word: string; readonly distance: number }[] = [];
  for (const word of new Set(words)) {
    const begins = wanted.length > 2 && word.startsWith(wanted);
    const distance = begins ? 0.5 : editDistance(wanted.toLowerCase(), word.toLowerCase());
    if (distance <= most) scored.push({ word, distance });
  }
  scored.sort((a, b) => a.distance - b.distance || (a.word < b.word ? -1 : 1));
  return scored.slice(0, count).map(({ word }) => word);
}

const LONGEST = 64;

/** Damerau and Levenshtein's distance (optimal string alignment); long words are cut at 64 characters. */
export function editDistance(left: string, right: string): number {
  const a = left.slice(0, LONGEST);
  const b = right.slice(0, LONGEST);
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swaps = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = swaps ? (before[j - 2] as number) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(replaced, swapped, (previous[j] as number) + 1, (row[j - 1] as number) + 1));
    }
    before = previous;
    previous = row;
  }
  return previous[b.length] as number;
}

/** The first index from `from` on for which `is` holds, if it holds for all behind that too; else `length`. */
export function firstWhere(length: number, is: (index: number) => boolean, from = 0): number {
  let [low, high] = [from, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Everything that these lead to, themselves included. */
export function reachedFrom<T>(from: Iterable<T>, next: (at: T) => Iterable<T>): Set<T> {
  const found = new Set(from);
  // What is added during the loop is visited by it.
  for (const at of found) for (const to of next(at)) found.add(to);
  return found;
}
