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

What each stub that rsptrace is tested with can do, and what it does that a client has to know. The tests write this file
(\`UPDATE_DOCS=1 scripts/test test/rsp/stub-matrix.test.ts\`) and fail when a stub no longer does what stands here; the hit rates
alone are not compared. Every stub goes through the same scenario: handshake, registers, memory read, written and read back,
and 300 hits of a function (1,000 with \`--long\`) against the program's own count. Then come an interrupt and a detach with a breakpoint still in,
and at the end the program's own output and exit status.

\`test/wire\` has a recording of it for each of them, with 8 calls, that says the same of the stub when it is [played back](wire.md). So no stub
is needed to look into a quirk. Where the client asks something new, \`UPDATE_WIRE=1 scripts/test test/rsp/recordings.test.ts\` records them anew.
`;

const COLUMNS = `\`registers by\`: \`g\` all at once, \`p\` singly. \`threads by\`: the packets that list them, and how many there were when more
than one. \`Z\`: the types of breakpoint taken: 0 software, 1 hardware, 2 to 4 watchpoints for writing, reading, both. \`hits/s\`: a
stop, the pc and two arguments, a step over the breakpoint, and on, on one shared two-core machine; \`record\` mostly needs no
step, and is faster.`;

const REST = `## What follows for rsptrace

- **QEMU** has a process for each cluster of a machine's processors (\`sifive_u\`, \`microchip-icicle-kit\`) and shows a client the first alone. rsptrace
  attaches to all of them (\`vAttach\`).
- **QEMU in user mode** waits for the acknowledgement of its answer without looking at what it has read already, so a batch of
  packets hangs it. It gets one packet at a time. It hears nothing while its program runs: where Ctrl-C or \`--duration\` has no
  effect, \`kill -INT\` the QEMU process.
- **gdbserver --attach** interrupts the process group of the traced program. A program that does not lead one (started by a
  script, not by a shell's prompt) it cannot interrupt. On its own machine rsptrace sends that signal itself; from another one it says so.
- **gdbserver before GDB 14** changes vector registers on processors with AVX-512. It reads the registers of all threads at a stop, and writes the upper ones
  back to the wrong place (sourceware bug 30818). A thread that was stopped in the middle of \`memcpy\` then copies other bytes. An axum server under gdbserver 13.1 died of
  signal 11 within seconds in 5 of 5 runs with a stop at each poll, and under GDB as well. With \`GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL\` it did not in 3 of 3.
  \`attach\`, \`run PROGRAM\` and \`profile --pid\` say so where it applies. Programs that rsptrace starts it starts with that variable, unless yours has \`hwcaps\`.
  The engine without stops makes only a few stops, so that it happens less. So \`attach\` leaves out probes that would stop such a process, where most do without;
  \`--engine mixed\` keeps them.
- **lldb-server** reports the system's own signal numbers (19 is SIGSTOP) and its PacketSize in decimal. A program that it has
  started prints through it; attach to one that runs to keep its output.
- **vgdb** passes answers on through a socket with Nagle's algorithm, which delays all but the first of a batch by up to 40 ms.
  It gets one packet at a time, a hundred times faster.
- **OpenOCD** answers reads of memory that is not there with zeros unless \`gdb report_data_abort enable\` is set. So it does for registers that
  the hart does not have, and a \`time\` of 0 is no clock. It leaves the
  target halted after a detach: rsptrace has it resume. It looks for halted harts every 100 ms, which is most of the time of
  a hit; the test's configuration calls \`poll\` more often. Accesses of single-steps do not reach its watchpoints, and those of compressed
  instructions are reported without a reason: rsptrace tells both by the instruction.
  While it works for long it sends empty console packets, to be heard.
- **All but the emulators** (QEMU without KVM, valgrind) put a trap instruction into memory for Z0: probes of code that is not loaded yet wait for it
  ([probes.md](probes.md#code-that-is-not-there-yet)).
- **rr** needs performance counters that few virtual machines have. The tests only say whether it could record, and do not try it.
`;
