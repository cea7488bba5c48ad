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

What each stub that rsptrace is tested with can do, and what a client has to know of it. The tests write this file
(\`UPDATE_DOCS=1 scripts/test test/rsp/stub-matrix.test.ts\`) and fail when a stub no longer does what stands here; hit rates are not compared. Every
stub goes through one scenario: handshake, registers, memory read, written and read back, 300 hits of a function (1,000 with \`--long\`) against the
program's own count, an interrupt, a detach with a breakpoint still in, the program's own output and exit status.

\`test/wire\` has a recording of it for each of them, with 8 calls, that says the same when it is [played back](wire.md), so no stub is needed to study
a quirk. Where the client asks something new, \`UPDATE_WIRE=1 scripts/test test/rsp/recordings.test.ts\` records them anew.
`;

const COLUMNS = `\`registers by\`: \`g\` all at once, \`p\` singly. \`threads by\`: the packets that list them, and how many there were when more than one. \`Z\`: the types of
breakpoint taken: 0 software, 1 hardware, 2 to 4 watchpoints for writing, reading, both. \`hits/s\`: a stop, the pc and two arguments, a step over the
breakpoint, and on, on one shared two-core machine; a recording mostly needs no step, and is faster.`;

const REST = `## What follows for rsptrace

- **QEMU** has a process for each cluster of a machine's processors (\`sifive_u\`, \`microchip-icicle-kit\`) and shows a client the first alone. rsptrace
  attaches to all of them (\`vAttach\`). Where its monitor has more harts (\`info cpus\`) than are listed then, a recording says how many (\`harts_unseen\` in \`--json\`).
- **QEMU in user mode** waits for the acknowledgement of its answer and does not read on, so it gets one packet at a time. It hears nothing while its
  program runs: where Ctrl-C or \`--duration\` has no effect, \`kill -INT\` the QEMU process.
- **gdbserver --attach** interrupts the process group of the traced program, so not a program that leads none (started by a script). On its own
  machine rsptrace sends that signal itself; from another one it says so.
- **gdbserver before GDB 14** writes the upper vector registers back to the wrong place at a stop, on processors with AVX-512 (sourceware bug 30818):
  a thread that was stopped in the middle of \`memcpy\` copies other bytes. An axum server under gdbserver 13.1 died of signal 11 within seconds in 5 of
  5 runs with a stop at each poll, also under GDB, and in none of 3 with \`GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL\`. rsptrace starts
  programs with that variable, unless yours has \`hwcaps\`, and \`attach\` leaves out probes that would stop such a process, where most do without
  (\`--engine mixed\` keeps them).
- **lldb-server** reports the system's own signal numbers (19 is SIGSTOP) and its PacketSize in decimal. A program that it has started prints through
  it; attach to one that runs to keep its output.
- **vgdb** passes answers on through a socket with Nagle's algorithm, which delays all but the first of a batch by up to 40 ms. It gets one packet at
  a time, a hundred times faster.
- **OpenOCD** answers reads of memory that is not there with zeros unless \`gdb report_data_abort enable\` is set, and of registers that the hart does
  not have: a \`time\` of 0 is no clock. It leaves the target halted after a detach, so rsptrace has it resume. It polls harts every 100 ms, which is
  most of the time of a hit; the test's configuration calls \`poll\` more often. It sends empty console packets while it works. Its watchpoints miss
  accesses of single-steps and report those of compressed instructions without a reason: rsptrace knows both by the instruction.
- **All but the emulators** (QEMU without KVM, valgrind) put a trap instruction into memory for Z0: probes of code that is not loaded yet wait for it
  ([probes.md](probes.md#code-that-is-not-there-yet)).
- **rr** needs performance counters that few virtual machines have. The tests only say whether it could record.
`;
