// The pages of --help as files, which `npm run build` writes next to the command line: laying one out takes as long as
// starting Node does, several times.
import { readFileSync } from 'node:fs';

/** The widths that there are pages of, in columns: a terminal gets the widest that fits. */
export const pageWidths = [120, 100, 80] as const;

/** The file of a page, in the folder of the command line. */
export function pageName(command: string | undefined, width: number): string {
  return `help/${command ?? 'rsptrace'}-${width}.txt`;
}

/**
 * The page that a command line asks for and nothing else: `--help`, `bt -h`. Undefined where it asks for more, for a
 * terminal narrower than the pages, and where no pages were built.
 */
export function helpPage(words: readonly string[], columns = 120): string | undefined {
  const width = pageWidths.find((one) => one <= columns);
  const found = /^(?:([a-z]+) )?(?:--help|-h)$/.exec(words.join(' '));
  if (width === undefined || !found) return undefined;
  try {
    return readFileSync(new URL(pageName(found[1], width), import.meta.url), 'utf8');
  } catch {
    return undefined;
  }
}
