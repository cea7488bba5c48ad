import { type ColumnsOptions, textTable } from '../../text/index.js';
import { boundText, timeWithError } from '../events/text-table.js';
import type { ThreadRow } from '../events/thread-summary.js';

export function threadTable(rows: readonly ThreadRow[], options: ColumnsOptions): string {
  const hasLost = rows.some(({ lost }) => lost > 0);
  const cells = rows.map((row) => [
    String(row.switches),
    ...(hasLost ? [String(row.lost)] : []),
    row.times_at_most ? boundText(row.on_cpu_ns, true) : timeWithError(row.on_cpu_ns, row.total_error_ns),
    boundText(row.longest_on_cpu_ns, row.times_at_most),
    row.switches > 1 ? boundText(row.off_cpu_ns, row.times_at_most) : '-',
    row.switches > 1 ? boundText(row.longest_off_cpu_ns, row.times_at_most) : '-',
    row.harts.join(','),
    row.thread,
  ]);
  const titles = [
    'switches>',
    ...(hasLost ? ['lost>'] : []),
    'on CPU>',
    'longest on>',
    'off CPU>',
    'longest off>',
    'harts',
    'thread~',
  ];
  return textTable(titles, cells, options);
}
