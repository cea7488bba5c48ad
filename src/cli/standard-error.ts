import { visible, wrapped } from '../text/index.js';

/** What a person is to know beside the data: a line each on stderr. */
export function note(...sentences: readonly string[]): void {
  if (sentences.length === 0) return;
  const lines = sentences.map((sentence) => `rsptrace: ${sentence}`);
  process.stderr.write(sentenceLines(lines, process.stderr));
}

/** A terminal gets lines broken between words; a file, in which other programs search, one line a sentence. */
export function sentenceLines(
  lines: readonly string[],
  { isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>,
): string {
  return lines
    .map(visible)
    .flatMap((line) => (isTTY ? wrapped(line, columns ?? 80, `${/^ */.exec(line)?.[0]}  `) : line))
    .map((line) => `${line}\n`)
    .join('');
}
