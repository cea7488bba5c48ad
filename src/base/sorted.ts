/** The first index below `length` for which `is` holds, if it holds for all behind that too; else `length`. */
export function firstWhere(length: number, is: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
