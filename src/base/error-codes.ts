/**
 * Every code that an error of rsptrace can have: what it means, and the way out. docs/errors.md is made from this table
 * (`scripts/error-docs.mjs --write`). A code stays what it is, because scripts of users compare it.
 */
export const errorCodes = {
  ARCH_DECODER: {
    means: 'Capstone, the x86 decoder, is of an unknown version, or not loaded.',
    remedy: 'Install with `npm ci`; in the library await `arch.prepare()`.',
  },
  ARCH_KNOWN: {
    means: 'An architecture was registered that is like a known one.',
    remedy: 'Give it names and an e_machine of its own.',
  },
  ARCH_MISMATCH: {
    means: "The ELF is for another architecture than the stub's target.",
    remedy: 'Look at the ELF and at the port.',
  },
  ARCH_UNSUPPORTED: {
    means: 'The ELF is of 32 bits, big-endian, or of an unknown architecture.',
    remedy: 'Give one for riscv64, x86_64 or aarch64.',
  },
  BTF_DAMAGED: {
    means: "The kernel's section `.BTF` cannot be read.",
    remedy: 'Take a whole kernel file.',
  },
  BUDGET_INVALID: {
    means: 'The budget file holds what none has.',
    remedy: 'Compare it with docs/budget.schema.json.',
  },
  BUDGET_UNREADABLE: {
    means: 'The budget file cannot be opened, or is no JSON.',
    remedy: '`rsptrace check --update` writes one.',
  },
  CHECK_CANNOT_WRITE: {
    means: 'The file of `--junit` or `--markdown` cannot be written.',
    remedy: 'Name a file that can be.',
  },
  CLOCK_UNAVAILABLE: {
    means: 'The clock that `--clock` names cannot be read here.',
    remedy: 'Take `--clock auto`.',
  },
  CORE_NOT_CORE: {
    means: 'The dump is not an ELF core file.',
    remedy: 'For a raw image of RAM give `--base 0x80000000`.',
  },
  CORE_TRUNCATED: {
    means: 'The core ends before all of its memory.',
    remedy: "Look at the disk's room and `ulimit -c`.",
  },
  CORE_UNREADABLE: {
    means: 'The dump cannot be read.',
    remedy: 'Look at the path.',
  },
  COUNTER_UNKNOWN: {
    means: "The target's time counter, or its rate, cannot be read.",
    remedy: 'Take `--engine stop`.',
  },
  DEBUG_FILE_MISMATCH: {
    means: 'The file of `--debug-file` is not of this ELF.',
    remedy: 'Compare `readelf -n` of the two.',
  },
  DWARF_DAMAGED: {
    means: 'Debug info contradicts itself, or is of an unknown kind.',
    remedy: 'Build again. If `llvm-dwarfdump --verify` finds nothing, report it.',
  },
  DWARF_MISSING: {
    means: 'The ELF has no debug info.',
    remedy: '`debug = 2` and `strip = false` under `[profile.release]`.',
  },
  DWARF_RELOCATABLE: {
    means: 'The file is an object file.',
    remedy: 'Give the linked kernel or program.',
  },
  DWARF_SPLIT: {
    means: 'The debug info lies in .dwo files or a .dwp package, and none was found.',
    remedy: 'Give it with `--debug-file` or `--debug-dir`, or build with `split-debuginfo = "off"`.',
  },
  DWARF_TOO_LARGE: {
    means: 'The ELF has more than 4 GiB of debug info.',
    remedy: 'Build with `debug = 1`.',
  },
  DWARF_VERSION: {
    means: 'A version or form of DWARF that rsptrace does not read.',
    remedy: 'Build with `-C dwarf-version=5`, and report the form.',
  },
  ELF_CHANGED: {
    means: 'The file changed while it was being read.',
    remedy: 'Start again once the build is done.',
  },
  ELF_DAMAGED: {
    means: 'A table or section contradicts the file or another one.',
    remedy: 'Link or copy the program again.',
  },
  ELF_MISMATCH: {
    means: "The target's code differs from the ELF's.",
    remedy: 'Give the ELF of exactly the build that runs. After an rsptrace that was killed, run `rsptrace detach`.',
  },
  ELF_NOT_MOVABLE: {
    means: '`--load-bias` is given for a program that is linked to fixed addresses.',
    remedy: 'Leave the option out.',
  },
  ELF_NOT_ELF: {
    means: 'The file is not an ELF.',
    remedy: 'Give the linked program, not a flat binary made by objcopy.',
  },
  ELF_TOO_COSTLY: {
    means: 'Reading the file takes more than its size should need.',
    remedy: 'If you trust it: `RSPTRACE_BUDGET=10`.',
  },
  ELF_UNREADABLE: {
    means: 'There is no such file, or it cannot be read.',
    remedy: 'Look at the path.',
  },
  ENGINE_UNAVAILABLE: {
    means: '`--engine target` was asked for, and no probe can do without stops.',
    remedy: 'Take `--engine auto`.',
  },
  EXPRESSION_MEMORY: {
    means: 'The memory that the expression leads to cannot be read.',
    remedy: 'A pointer may be null, freed, or not set yet.',
  },
  EXPRESSION_NAME: {
    means: 'There is no such variable, member or type.',
    remedy: 'See the names in the error, or `rsptrace types`.',
  },
  EXPRESSION_OPTIMIZED_OUT: {
    means: 'The compiler no longer keeps the variable here.',
    remedy: 'Ask where it lives, or build with less optimisation.',
  },
  EXPRESSION_SYNTAX: {
    means: 'The expression cannot be parsed.',
    remedy: 'See docs/expressions.md.',
  },
  EXPRESSION_TYPE: {
    means: 'The expression does what its type does not allow.',
    remedy: 'See `rsptrace types`.',
  },
  FDT_DAMAGED: {
    means: "The device tree in the target's memory cannot be read.",
    remedy: 'Take `--engine stop`.',
  },
  FUTURES_NONE: {
    means: 'The debug info describes no Future.',
    remedy: "Give an ELF with async Rust and `debug = 2`, or probe functions: `-p 'fn:**'`.",
  },
  FUTURES_NO_MATCH: {
    means: 'No Future matches the glob.',
    remedy: 'Take one of the nearest names.',
  },
  INPUT_DAMAGED: {
    means: 'A section ends too early, or a number in it is too large.',
    remedy: 'Build or copy the file again.',
  },
  INTERNAL: {
    means: 'A defect of rsptrace.',
    remedy: 'Report it with the output of `RSPTRACE_STACK=1`.',
  },
  INTERRUPTED: {
    means: 'A signal came before anything was recorded.',
    remedy: 'Start again: the target goes on as it was.',
  },
  KERNEL_MOVES: {
    means: 'Linux chose at random where it runs (KASLR).',
    remedy: 'Add `nokaslr` to its command line.',
  },
  LIBRARY_UNREADABLE: {
    means: 'A shared library of the process can be read nowhere.',
    remedy: "Copy the process's own file to the same path here.",
  },
  LOAD_ADDRESS_UNKNOWN: {
    means: 'The process has not loaded this program, or the machine not yet run this kernel.',
    remedy: 'Give the program that runs; for a moved kernel `--load-bias`.',
  },
  MEMORY_MISSING: {
    means: "None of the program's memory is in the target or dump.",
    remedy: 'Look at the ELF and at `--base`.',
  },
  OPEN_CANNOT_SERVE: {
    means: '`rsptrace open` cannot listen at its port.',
    remedy: 'End what listens there, or take another with `--port`.',
  },
  OUTPUT_CANNOT_WRITE: {
    means: 'A file or stream cannot be written.',
    remedy: 'Name one that you may write to, on a disk with room.',
  },
  OUTPUT_EXISTS: {
    means: 'A file of that name is there.',
    remedy: 'Overwrite it with `--force`.',
  },
  OUTPUT_IN_USE: {
    means: 'Another rsptrace is writing this file.',
    remedy: 'Name another file, or wait.',
  },
  OUTPUT_IS_INPUT: {
    means: 'An output file is also an input.',
    remedy: 'Name another output file.',
  },
  OUTPUT_TWICE: {
    means: 'Two outputs go to the same file.',
    remedy: 'Give each its own file.',
  },
  PAGE_TABLES_TOO_LARGE: {
    means: 'The target has more page tables than any kernel.',
    remedy: 'Stop it elsewhere, or take `--engine stop`.',
  },
  PART_MISSING: {
    means: 'A file of rsptrace, or of its packages, cannot be loaded.',
    remedy: 'Install with `npm ci`.',
  },
  PATCH_REFUSED: {
    means: 'Code in the target cannot be changed or put back.',
    remedy: 'Take `--engine stop`, or restart the target.',
  },
  PLUGIN_FAILED: {
    means: 'A plug-in threw an error.',
    remedy: 'Mend it: `RSPTRACE_STACK=1` shows where it threw.',
  },
  PLUGIN_UNUSABLE: {
    means: 'A plug-in cannot be loaded, or exports nothing usable.',
    remedy: 'Export `kinds`, `formats` or `runtimes`: docs/api.md.',
  },
  PROBE_CONDITION: {
    means: 'Nothing that matches has what the condition looks at.',
    remedy: 'Name what is there: docs/expressions.md.',
  },
  PROBE_INLINED: {
    means: 'The compiler inlined all that matches, and no place shows it.',
    remedy: 'Probe what the hint names, or add `#[inline(never)]`.',
  },
  PROBE_NO_MATCH: {
    means: 'No function matches the probe.',
    remedy: 'Take one of the nearest names in the error.',
  },
  PROBE_SYNTAX: {
    means: 'The probe cannot be parsed.',
    remedy: 'See docs/probes.md.',
  },
  PROBE_UNSAFE: {
    means: 'The target would break if what matches were probed.',
    remedy: "Leave it out: `-p '!fn:NAME'`.",
  },
  PROGRAM_NOT_SEEN: {
    means: 'No hart has the program in its address space, or the process runs another one.',
    remedy: 'Stop the machine where the program runs, and give the ELF of that process.',
  },
  RECORDS_DAMAGED: {
    means: 'The records of a killed recording cannot be understood.',
    remedy: 'Use the trace.',
  },
  RECORDS_MISMATCH: {
    means: 'The records are of another program, or of other probes.',
    remedy: 'Use the ELF, the plug-ins and the rsptrace that recorded.',
  },
  RECORDS_MISSING: {
    means: 'There is no file of records next to the trace.',
    remedy: 'Nothing is to be recovered: the trace is whole.',
  },
  RING_LOST: {
    means: "The ring in the target's memory can no longer be reached.",
    remedy: 'Reserve memory with `--scratch`, or take `--engine stop`.',
  },
  RSP_BAD_ADDRESS: {
    means: 'This is no address of a stub.',
    remedy: 'Write `host:port`, `:port`, or the path of a unix socket.',
  },
  RSP_BAD_REQUEST: {
    means: 'The library asked for something that no packet can carry.',
    remedy: 'Ask for less at once.',
  },
  RSP_BAD_STATE: {
    means: 'The library asked a target that runs, or read a reply too early.',
    remedy: 'Interrupt the target, await `send()`.',
  },
  RSP_BAD_XML: {
    means: "The stub's description of the target cannot be used.",
    remedy: 'Report it, with `--record-wire`.',
  },
  RSP_BREAKPOINT_REFUSED: {
    means: 'The stub refused a breakpoint.',
    remedy: 'Narrow `--probe`, or take `--hw` where the code is not in RAM yet.',
  },
  RSP_CLOSED: {
    means: 'The stub closed the connection.',
    remedy: 'Look whether the target runs. `--reconnect` helps with a broken link.',
  },
  RSP_CONNECT: {
    means: 'No connection to the stub.',
    remedy: 'Start the stub, and look at the port.',
  },
  RSP_NO_PROGRAM: {
    means: 'The stub has no program.',
    remedy: 'Start the program at the stub.',
  },
  RSP_NO_TARGET_DESCRIPTION: {
    means: 'The stub does not describe a register that is needed.',
    remedy: 'Take QEMU, gdbserver or OpenOCD.',
  },
  RSP_PROTOCOL: {
    means: 'What answers does not speak the GDB remote protocol.',
    remedy: 'Look at the port, or lower the speed of the line.',
  },
  RSP_REPLAY_DIVERGED: {
    means: 'The replay asks for what the recording has not.',
    remedy: 'Use the command, options and ELF of the recording.',
  },
  RSP_REPLAY_ENDED: {
    means: 'The recording of the wire ends here.',
    remedy: 'It was cut off: record it again.',
  },
  RSP_REPLAY_UNREADABLE: {
    means: 'The file is no recording of the wire.',
    remedy: 'Give a file of `--record-wire`.',
  },
  RSP_TIMEOUT: {
    means: 'The stub did not answer in time.',
    remedy: 'Look at the target. A slow link needs a longer `--timeout`.',
  },
  RSP_WRITE_REFUSED: {
    means: 'The stub refused to write a register.',
    remedy: 'Restart the target: the program may have gone wrong. Leave that probe out.',
  },
  RUNTIME_UNKNOWN: {
    means: 'No runtime has the name that `--runtime` gives.',
    remedy: 'The message lists them.',
  },
  ATTACH_NO_PROCESS: {
    means: 'There is no such process any more.',
    remedy: '`pgrep -a NAME` shows those that run.',
  },
  GDBSERVER_FAILED: {
    means: '`gdbserver` could not attach, or start the program; or the process may not be read.',
    remedy: 'Attaching and reading need the same user and `kernel.yama.ptrace_scope` 0, or root.',
  },
  RUN_EXITED: {
    means: 'The program ended before the guest was started.',
    remedy: 'See its last lines in the error.',
  },
  RUN_HAS_STUB: {
    means: "QEMU's command line asks for a stub, and `run` adds its own.",
    remedy: 'Leave `-s` or `-gdb` out.',
  },
  RUN_KILLED: {
    means: 'A signal ended the program or its `gdbserver`.',
    remedy: 'Look who killed it: memory may be short.',
  },
  RUN_NOT_FOUND: {
    means: 'The program, or `gdbserver`, cannot be started.',
    remedy: 'Install it; the error names the package.',
  },
  RUN_NO_ELF: {
    means: 'Nothing says which ELF runs.',
    remedy: 'Name it before `--`, or give QEMU `-kernel kernel.elf`.',
  },
  RUN_NOT_LOADABLE: {
    means: 'QEMU would load the kernel where no memory is.',
    remedy: 'Boot a flat binary: `objcopy -O binary kernel.elf kernel.bin`.',
  },
  RUN_NOT_DETERMINISTIC: {
    means: '`--deterministic` needs a QEMU that counts instructions.',
    remedy: 'Leave `-enable-kvm` and `-accel kvm` out.',
  },
  RUN_NO_COMMAND: {
    means: '`rsptrace run` was given no command.',
    remedy: 'Put it behind `--`: `rsptrace run kernel.elf -- qemu-system-riscv64 ...`.',
  },
  SCRATCH_CLOSED: {
    means: 'The memory shared with QEMU was closed or cut off.',
    remedy: 'Start QEMU again.',
  },
  SCRATCH_NO_SYMBOL: {
    means: 'The program has no static that `--scratch-symbol` names.',
    remedy: 'Make it a static with `#[unsafe(no_mangle)]` and `#[used]`.',
  },
  SCRATCH_SYNTAX: {
    means: 'The value of `--scratch` is not ADDR,SIZE.',
    remedy: 'Write `--scratch 0x87000000,1M`.',
  },
  SCRATCH_UNAVAILABLE: {
    means: 'The target offers no memory that nobody else owns.',
    remedy: 'Name some with `--scratch`, or take `--engine stop`.',
  },
  SCRATCH_UNUSABLE: {
    means: 'The memory that you named is too small, in use, or does not keep what is written.',
    remedy: 'Name other memory, or take `--engine stop`.',
  },
  SAMPLES_UNAVAILABLE: {
    means: 'The target is a replay, or cannot be interrupted.',
    remedy: 'Start a process by gdbserver itself, or with `setsid`.',
  },
  STACKS_UNAVAILABLE: {
    means: '`--bt` records who polls, and no poll is traced.',
    remedy: "Add `--probe 'poll:GLOB'`, or leave `--bt` out.",
  },
  SVG_FAILED: {
    means: 'Graphviz cannot draw the graph, or it has too many Futures.',
    remedy: 'Give a glob, or take `--dot`.',
  },
  TARGET_RESTARTED: {
    means: 'The target was started anew while the link was broken.',
    remedy: 'Record again.',
  },
  TARGET_STUCK: {
    means: 'A single step does not move the target, or it stops where no probe is.',
    remedy: 'Leave out the function that the error names.',
  },
  TRACE_DAMAGED: {
    means: 'A saved trace has bytes that no trace has.',
    remedy: 'Read what is before the byte that the error names.',
  },
  TRACE_FOREIGN: {
    means: 'The file is no trace that can be read back.',
    remedy: 'Give a `.pftrace` or `.pftrace.gz`.',
  },
  TRACE_NEWER: {
    means: 'A newer rsptrace wrote this trace.',
    remedy: 'Install that version.',
  },
  TRACE_NO_MATCH: {
    means: 'Nothing in the trace has that name or time.',
    remedy: 'See `rsptrace report`.',
  },
  TRACE_TOO_LARGE: {
    means: 'A packed trace unpacks to far more than a recording does.',
    remedy: 'If you trust it: `RSPTRACE_BUDGET=10`.',
  },
  TRACE_UNKNOWN_FORMAT: {
    means: 'No format has the extension of the file.',
    remedy: 'Take an extension that the error lists.',
  },
  TRACE_UNREADABLE: {
    means: 'A saved trace cannot be read.',
    remedy: 'Look at the path.',
  },
  TRACE_WRITE_FAILED: {
    means: 'The trace cannot be written any further.',
    remedy: 'Make room: what was written can be opened.',
  },
  TYPE_UNKNOWN: {
    means: 'The program has no type of that name.',
    remedy: 'Write the name as Rust does: `exec::Task`, `Vec<u8>`.',
  },
  UNTIL_NO_FUNCTION: {
    means: '`--until` names no function of the program.',
    remedy: 'Give its symbol, or its path with `*`.',
  },
  USAGE: {
    means: 'An option, a value or a command is wrong.',
    remedy: 'See `rsptrace COMMAND --help`.',
  },
  WATCH_NOT_YET: {
    means: 'Pointers lead to the place, and the program has not set them yet.',
    remedy: 'Attach later, or watch the pointer.',
  },
  WATCH_NO_PLACE: {
    means: 'What is to be watched is a value, not a place in memory.',
    remedy: 'Give its size (`watch:0x80001000,8`) or type.',
  },
  WATCH_OVERLAP: {
    means: 'Two watched places share bytes.',
    remedy: 'For reads and writes one is enough: `watch:NAME:rw`.',
  },
  WATCH_REFUSED: {
    means: 'The stub refused a watchpoint.',
    remedy: 'Watch fewer or smaller places.',
  },
  WATCH_SIZE: {
    means: 'The place has a size that no watchpoint covers.',
    remedy: 'Watch 1, 2, 4 or 8 bytes: a member, or ADDRESS,SIZE.',
  },
} as const satisfies Record<string, { readonly means: string; readonly remedy: string }>;

/**
 * A code of a program or plug-in that uses the library, such as `my-runtime:NO_TASKS`: its own name, a colon, its own
 * code. No code of rsptrace has a colon, so the two never meet.
 */
export type OwnErrorCode = `${string}:${string}`;

export type ErrorCode = keyof typeof errorCodes | OwnErrorCode;
