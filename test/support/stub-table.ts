// docs/internals/stubs.md as the scenario's rows make it: what the suite writes and compares.
import type { StubRow } from './stub-row.js';

const HITS = /\| [\d,]+ \|$/gm;

/** What is compared: everything but the measured rates. */
export const withoutRates = (document: string): string => document.replace(HITS, '|');

export function stubTable(rows: readonly StubRow[]): string {
  const head = [
    ...[
      'stub',
      'version',
      'packet size',
      'no-ack',
      'target.xml',
      'registers by',
      'threads by',
      'vCont',
      'Z',
      'memory map',
      'vFile',
    ],
    'hits/s',
  ];
  const lines = rows.map((row) => [
    row.stub,
    row.version,
    row.packetSize,
    yes(row.noAck),
    yes(row.described),
    row.registers,
    row.threads,
    row.vCont === '' ? 'no' : row.vCont,
    row.breakpoints,
    yes(row.memoryMap),
    yes(row.fileTransfer),
    rounded(row.hitsPerSecond),
  ]);
  const table = [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  return `${INTRODUCTION}\n${table}\n\n${COLUMNS}\n\n## Quirks seen\n\n${quirks(rows)}\n`;
}

const yes = (value: boolean): string => (value ? 'yes' : 'no');

/** Two digits that count. */
function rounded(rate: number): string {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(rate)) - 1);
  return (Math.round(rate / unit) * unit).toLocaleString('en-US');
}

function quirks(rows: readonly StubRow[]): string {
  const byQuirk = new Map<string, Set<string>>();
  for (const row of rows) {
    for (const quirk of row.quirks)
      byQuirk.set(quirk, (byQuirk.get(quirk) ?? new Set()).add(`${row.stub} ${row.version}`));
  }
  return [...byQuirk]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([quirk, stubs]) => `- ${quirk}: ${[...stubs].join('; ')}`)
    .join('\n');
}

const INTRODUCTION = `# What each stub does

For users: [stubs.md](../stubs.md). The tests write this page (\`UPDATE_DOCS=1 scripts/test test/rsp/stub-matrix.test.ts\`) and fail when a stub no longer
does what stands here; hit rates are not compared. \`test/wire\` has a recording of each to [play back](../wire.md)
(\`UPDATE_WIRE=1 scripts/test test/rsp/recordings.test.ts\` records them anew).
`;

const COLUMNS = `\`registers by\`: \`g\` all at once, \`p\` singly. \`threads by\`: the packets that list them, and how many there were. \`Z\`: the types of breakpoint taken: 0
software, 1 hardware, 2 to 4 watchpoints for writing, reading, both. \`hits/s\`: a stop, the pc and two arguments, a step over the breakpoint, and on; a
recording mostly needs no step, and is faster.`;
