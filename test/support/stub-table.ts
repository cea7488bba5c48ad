// docs/stubs.md as the scenario's rows make it: what the suite writes and compares.
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
  return `${INTRODUCTION}\n${table}\n\n${COLUMNS}\n\n## Quirks seen\n\n${quirks(rows)}\n\n${REST}`;
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

const INTRODUCTION = `# Stubs

What each stub that rsptrace is tested with can do. The tests write this page (\`UPDATE_DOCS=1 scripts/test test/rsp/stub-matrix.test.ts\`) and fail when
a stub no longer does what stands here; hit rates are not compared. \`test/wire\` has a recording of each to [play back](wire.md)
(\`UPDATE_WIRE=1 scripts/test test/rsp/recordings.test.ts\` records them anew).
`;

const COLUMNS = `\`registers by\`: \`g\` all at once, \`p\` singly. \`threads by\`: the packets that list them, and how many there were. \`Z\`: the types of breakpoint taken: 0
software, 1 hardware, 2 to 4 watchpoints for writing, reading, both. \`hits/s\`: a stop, the pc and two arguments, a step over the breakpoint, and on; a
recording mostly needs no step, and is faster.`;

const REST = `## What follows for rsptrace

- **QEMU** has a process for each cluster of a machine's processors (\`sifive_u\`, \`microchip-icicle-kit\`). rsptrace attaches to all of them;
  harts that are still not listed are counted (\`harts_unseen\` in \`--json\`).
- **QEMU in user mode** hears nothing while its program runs: where Ctrl-C or \`--duration\` has no effect, \`kill -INT\` the QEMU process.
- **gdbserver --attach** cannot interrupt a program that leads no process group (started by a script). On its own machine rsptrace sends that signal
  itself; from another one it says so.
- **gdbserver before GDB 14** damages upper vector registers at a stop, on processors with AVX-512 (sourceware bug 30818), so that a program may crash.
  rsptrace starts programs with \`GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL\`, unless yours has \`hwcaps\`. \`attach\` leaves out probes that would
  stop such a process, where most do without (\`--engine mixed\` keeps them).
- **lldb-server**: a program that it has started prints through it; attach to one that runs to keep its output.
- **OpenOCD** answers reads of memory that is not there with zeros unless \`gdb report_data_abort enable\` is set, and of registers that the hart does
  not have: a \`time\` of 0 is no clock. It polls harts every 100 ms, which is most of the time of a hit; the test's configuration calls \`poll\` more often.
- **All but the emulators** (QEMU without KVM, valgrind) put a trap instruction into memory for Z0: probes of code that is not loaded yet wait for it
  ([probes.md](probes.md#code-that-is-not-there-yet)).
`;
