// What pages say that a command prints, compared with what it prints: all but numbers, which differ from run to run.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';

const root = join(import.meta.dirname, '../..');

/** What stands between fences of a page. */
export const blocksOf = (page: string): string[] =>
  readFileSync(join(root, page), 'utf8')
    .split(/^```\w*\n/m)
    .filter((_, i) => i % 2 === 1);

/** Lines of what pages say that a command prints, up to the next command. */
function printed(pages: readonly string[], command: string): string[] {
  return pages.flatMap(blocksOf).flatMap((block) => {
    const lines = block.split('\n');
    const at = lines.findIndex((line) => line.startsWith(`$ ${command}`));
    const rest = at < 0 ? [] : lines.slice(at + 1);
    const next = rest.findIndex((line) => line.startsWith('$ '));
    return rest.slice(0, next < 0 ? undefined : next).filter((line) => !/^\s*(\.\.\.)?$/.test(line));
  });
}

/** Without numbers, but for those of lines, and without bars. */
const plain = (line: string): string =>
  line
    .replaceAll(/0x[0-9a-f]+/g, '#')
    .replaceAll(/(?<![:\w#])\d+(\.\d+)?( ?(ns|us|ms|s)\b)?/g, '#')
    .replaceAll(/#\.\.#/g, '#')
    .replaceAll(/[▁-█]/g, '')
    .replaceAll(/ +/g, ' ')
    .replace(/, \.\.\.$/, '')
    .trim();

/** That the output has each line that pages have behind a command; `isSilent`: they may have none. */
export function holds(
  t: Pick<Test, 'ok'>,
  pages: readonly string[],
  command: string,
  output: string,
  isSilent = false,
): void {
  const lines = printed(pages, command);
  const real = output.split('\n').map(plain);
  t.ok(isSilent || lines.length > 0, command);
  for (const line of lines) {
    const isThere = real.some((each) => each === plain(line) || each.startsWith(`${plain(line)} `));
    t.ok(isThere, line, { plain: plain(line), real });
  }
}
