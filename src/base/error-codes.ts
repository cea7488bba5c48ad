/**
 * Every code that an error of rsptrace can have: what it means, and the way out. docs/errors.md is made from this table
 * (`scripts/error-docs.mjs --write`). A code stays what it is, because scripts of users compare it.
 */
export const errorCodes = {
  ARCH_DECODER: {
    means: 'The x86 decoder, Capstone, is of a version that is not known to work, or was used before it was loaded.',
    remedy: 'Install rsptrace with its own packages: `npm ci`. In the library, await `arch.prepare()` first.',
  },
  ARCH_KNOWN: {
    means: 'An architecture was registered that cannot be told from one that is known.',
    remedy: 'Give it a name, an e_machine and names of gdb that no other has.',
  },
  ARCH_MISMATCH: {
    means: "The ELF is for another architecture than the stub's target.",
    remedy: 'Give the ELF that runs there, or look whether it is the right port.',
  },
  ARCH_UNSUPPORTED: {
    means: 'The ELF is for an architecture that rsptrace does not know: of 32 bits, or big-endian, or another one.',
    remedy: 'Give an ELF for riscv64 or x86_64.',
  },
  BTF_DAMAGED: {
    means: "The kernel's section `.BTF`, which describes its types, cannot be read.",
    remedy: 'Take a kernel file that was not cut off, or one without BTF.',
  },
  BUDGET_INVALID: {
    means: 'A budget file holds something that no budget file has: the error names the place, and what comes near.',
    remedy: 'Compare it with docs/budget.schema.json, which editors understand too.',
  },
  BUDGET_UNREADABLE: {
    means: 'A budget file cannot be opened, or is no JSON.',
    remedy: 'Look at the path; `rsptrace check TRACE --budget FILE --update` writes one from a trace.',
  },
  CHECK_CANNOT_WRITE: {
    means: 'The report of a check cannot be written to the file of `--junit` or `--markdown`.',
    remedy: 'Name a file that can be written.',
  },
  CLOCK_UNAVAILABLE: {
    means: 'The clock that `--clock` names cannot be read on this target.',
    remedy: 'Take `--clock auto`, or one of those that the error lists.',
  },
  CORE_NOT_CORE: {
    means: 'The dump is not an ELF core file.',
    remedy: 'For a raw image of RAM say where it begins: `--base 0x80000000`.',
  },
  CORE_TRUNCATED: {
    means: 'The core file ends before all of the memory that it lists.',
    remedy: "Dump again: look at the disk's room and at `ulimit -c`.",
  },
  CORE_UNREADABLE: {
    means: 'The dump cannot be opened or read.',
    remedy: 'Look at the path and at who may read the file.',
  },
  COUNTER_UNKNOWN: {
    means: "The engine without stops cannot read the target's time counter, or cannot find out its rate.",
    remedy: 'Take `--engine stop`, which reads the time at each stop.',
  },
  DEBUG_FILE_MISMATCH: {
    means: 'The file of `--debug-file` does not belong to this ELF.',
    remedy: 'Give the debug file of the same build: compare `readelf -n` of the two.',
  },
  DWARF_DAMAGED: {
    means:
      'A part of the debug info contradicts itself, or call frame information is of a kind that rsptrace does not read.',
    remedy: 'Build the program again. If the file is whole (`llvm-dwarfdump --verify`), report it.',
  },
  DWARF_MISSING: {
    means: 'The ELF has no debug info.',
    remedy:
      'Put `debug = 2` and `strip = false` under `[profile.release]` in Cargo.toml, and do not run strip on the file.',
  },
  DWARF_RELOCATABLE: {
    means: 'The file is an object file that is not linked yet.',
    remedy: 'Give the linked kernel or program.',
  },
  DWARF_SPLIT: {
    means: 'The debug info lies in separate .dwo files or in a .dwp package, and none of these was found.',
    remedy:
      'Give the linked program, with the .dwp file beside it or the .dwo files where the build put them; `--debug-file` and `--debug-dir` lead to other places. Or build with `split-debuginfo = "off"`.',
  },
  DWARF_TOO_LARGE: {
    means: 'The ELF has more than 4 GiB of debug info.',
    remedy: 'Build with `debug = 1`, or leave crates out of the debug info.',
  },
  DWARF_VERSION: {
    means: 'A part of the debug info is of a version of DWARF, or has a form, that rsptrace does not read.',
    remedy: 'Build with DWARF 5 or 4: `-C dwarf-version=5`. Report the form.',
  },
  ELF_CHANGED: {
    means: 'The file changed while it was being read.',
    remedy: 'Start again once the build is done.',
  },
  ELF_DAMAGED: {
    means: 'A table or section of the ELF lies outside the file, or contradicts another one.',
    remedy: 'Link the program again. Look whether the copy is whole.',
  },
  ELF_MISMATCH: {
    means: "The target's code differs from the ELF's.",
    remedy:
      'Give the ELF of exactly the build that runs, and say where it is loaded if it was moved. After an rsptrace that was killed, run `rsptrace detach`.',
  },
  ELF_NOT_MOVABLE: {
    means: '`--load-bias` is given for a program that is linked to fixed addresses.',
    remedy: 'Leave the option out. Only position-independent programs are moved by a loader.',
  },
  ELF_NOT_ELF: {
    means: 'The file is not an ELF.',
    remedy: 'Give the linked kernel or program with its debug info, not a flat binary made by objcopy.',
  },
  ELF_TOO_COSTLY: {
    means: 'Reading the file takes more work or memory than a file of its size should need.',
    remedy: 'Build it again from its source. `RSPTRACE_BUDGET=10` allows ten times as much.',
  },
  ELF_UNREADABLE: {
    means: 'There is no such file, or it cannot be opened or read.',
    remedy: 'Look at the path and at who may read the file.',
  },
  ENGINE_UNAVAILABLE: {
    means: '`--engine target` was asked for, and no probe can do without stops.',
    remedy: 'Take `--engine auto`, which uses breakpoints where it has to.',
  },
  EXPRESSION_MEMORY: {
    means: 'The memory that the expression leads to cannot be read.',
    remedy: 'Look at the pointers on the way: one may be null, freed, or not set yet.',
  },
  EXPRESSION_NAME: {
    means: 'The expression names a variable, member or type that is not there.',
    remedy: 'Take one of the names that the error lists, or see `rsptrace types`.',
  },
  EXPRESSION_OPTIMIZED_OUT: {
    means: 'The compiler keeps the variable no longer at this address.',
    remedy: 'Ask where it still lives, or build with less optimisation.',
  },
  EXPRESSION_SYNTAX: {
    means: 'The expression cannot be parsed.',
    remedy: 'Write `self.header.id`, `(*p).next`, `a[3]`, `&x`, `p as *const T`, or `crate::module::STATIC`.',
  },
  EXPRESSION_TYPE: {
    means: 'The expression does something that its type does not allow, such as an index into an integer.',
    remedy: 'Look at the type with `rsptrace types`.',
  },
  FDT_DAMAGED: {
    means: "The device tree in the target's memory cannot be read.",
    remedy: 'Start the machine again. `--engine stop` needs no device tree.',
  },
  FUTURES_NONE: {
    means: 'The program has no Future that its debug info describes.',
    remedy:
      "Give an ELF that was built from Rust with async code and `debug = 2`; or probe functions, as `-p 'fn:**'` does.",
  },
  FUTURES_NO_MATCH: {
    means: 'No Future matches the glob.',
    remedy: 'Take one of the nearest names, or list all without a glob.',
  },
  INPUT_DAMAGED: {
    means: 'A section ends before what it promises, or a number in it is too large to be an offset or a size.',
    remedy: 'The file is damaged: build or copy it again.',
  },
  INTERNAL: {
    means: 'A defect of rsptrace, not of your program.',
    remedy: 'Report it with the output of `RSPTRACE_STACK=1`.',
  },
  INTERRUPTED: {
    means: 'A signal came before anything was recorded. The target goes on as it was.',
    remedy: 'Start again.',
  },
  KERNEL_MOVES: {
    means: 'Linux chose at random where it runs (KASLR), so no address of the ELF holds.',
    remedy: 'Add `nokaslr` to its command line.',
  },
  LIBRARY_UNREADABLE: {
    means: 'A shared library of the process can be read neither from the stub nor from this machine.',
    remedy: "Copy the process's own file to the same path here. Its frames are walked without it meanwhile.",
  },
  LOAD_ADDRESS_UNKNOWN: {
    means: 'The process at the stub has not loaded this program, or the machine has not run this kernel yet.',
    remedy:
      'Give the program that runs there. A process that waits for its interpreter is traced from its start on. For a kernel that its loader moves, `--load-bias` says how far.',
  },
  MEMORY_MISSING: {
    means: 'Nothing of the memory that the program writes to is in the target or the dump.',
    remedy: 'Look whether the ELF runs there, and whether `--base` is right.',
  },
  OPEN_CANNOT_SERVE: {
    means: '`rsptrace open` cannot listen at its port on this machine.',
    remedy: 'End what listens there, or take another with `--port`.',
  },
  OUTPUT_CANNOT_WRITE: {
    means:
      'A file or stream that is written cannot be: a trace, a report, a budget, the console, the wire, a graph, standard output.',
    remedy: 'Name a file in a folder that you may write to, on a disk with room.',
  },
  OUTPUT_EXISTS: {
    means: 'A file of that name is there, and what it holds would be lost.',
    remedy: 'Name another file, or have it overwritten with `--force`.',
  },
  OUTPUT_IN_USE: {
    means: 'Another rsptrace is writing this file.',
    remedy: 'Name another file, or wait until that one has ended.',
  },
  OUTPUT_IS_INPUT: {
    means: 'An output file is also an input: writing it would destroy it.',
    remedy: 'Name another output file.',
  },
  OUTPUT_TWICE: {
    means: 'Two outputs go to the same file.',
    remedy: 'Give each its own file.',
  },
  PAGE_TABLES_TOO_LARGE: {
    means: "The walk through the target's page tables found more of them than any kernel has.",
    remedy: 'Stop the target where its page tables are set up. `--engine stop` walks none.',
  },
  PART_MISSING: {
    means: 'A package of rsptrace, or a file of it, cannot be loaded.',
    remedy: 'Install rsptrace with all its packages (`npm ci`), or put the part into the bundle.',
  },
  PATCH_REFUSED: {
    means: 'Code in the target cannot be changed or put back, or a hart does not leave it.',
    remedy: 'Take `--engine stop`, which patches nothing. A restart of the target brings its own code back.',
  },
  PLUGIN_FAILED: {
    means: 'The code of a `--plugin` threw an error while it was used.',
    remedy: 'Mend the plug-in: `RSPTRACE_STACK=1` shows where it threw.',
  },
  PLUGIN_UNUSABLE: {
    means: 'A file of `--plugin` cannot be loaded, or exports nothing that can be used.',
    remedy: 'Give an ES module whose default export has `kinds`, `formats` or `runtimes`: docs/api.md.',
  },
  PROBE_CONDITION: {
    means: "No function or Future that matches has what the probe's condition looks at.",
    remedy: 'See the reason in the error, and docs/expressions.md: name an argument or a member that there is.',
  },
  PROBE_INLINED: {
    means:
      'The compiler inlined every function that matches, so nothing calls it; or every poll, in ways that show none.',
    remedy: 'Do what the hint says: probe the function that its code went into, or add `#[inline(never)]`.',
  },
  PROBE_NO_MATCH: {
    means: 'No function matches the probe.',
    remedy: 'Take one of the nearest names in the error.',
  },
  PROBE_SYNTAX: {
    means: 'The probe cannot be parsed.',
    remedy: 'See docs/probes.md for how probes are written.',
  },
  PROBE_UNSAFE: {
    means: 'What matches must not be probed, because the target would break.',
    remedy: "Leave it out: `-p '!fn:NAME'`.",
  },
  PROGRAM_NOT_SEEN: {
    means: 'No hart runs the program or has it in its address space.',
    remedy: 'Look again, or stop the machine where the program runs.',
  },
  RECORDS_DAMAGED: {
    means: 'The file of records beside a trace, which a killed recording has left, cannot be understood.',
    remedy: 'Use the trace itself, which has what was understood before the recording was killed.',
  },
  RECORDS_MISMATCH: {
    means: 'The records of a killed recording are of another program, or of other probes, than those that are given.',
    remedy: 'Recover with the ELF, the plug-ins and the version of rsptrace that recorded.',
  },
  RECORDS_MISSING: {
    means: 'There is no file of records beside the trace.',
    remedy: 'Nothing is to be recovered: the recording ended in good order, or each of its events was a stop.',
  },
  RING_LOST: {
    means: "The ring in the target's memory can no longer be reached.",
    remedy: 'The target unmapped or overwrote it: reserve memory with `--scratch`, or take `--engine stop`.',
  },
  RSP_BAD_ADDRESS: {
    means: 'What was given is not the address of a stub.',
    remedy: 'Write `host:port`, `:port`, or the path of a unix socket.',
  },
  RSP_BAD_REQUEST: {
    means: 'The library was asked for something that no packet can carry.',
    remedy: "Ask for less at once: the session's memory goes piece by piece.",
  },
  RSP_BAD_STATE: {
    means:
      'The library was used in the wrong order: the target was asked while it runs, or a reply was read before it came.',
    remedy: 'Interrupt the target first. Send a batch once, and await its `send()`.',
  },
  RSP_BAD_XML: {
    means: "The stub's description of its registers, memory or threads cannot be used.",
    remedy: 'Record the wire with `--record-wire` and report it; a newer stub may do better.',
  },
  RSP_BREAKPOINT_REFUSED: {
    means: 'The stub refused a breakpoint, or does not take one again that was out for one step.',
    remedy: 'Narrow `--probe`, or take `--hw` where the code is not in RAM yet.',
  },
  RSP_CLOSED: {
    means: 'The stub closed the connection, or the session has ended.',
    remedy: 'Look whether the target still runs. `--reconnect` goes on when it answers again.',
  },
  RSP_CONNECT: {
    means: 'No connection to the stub.',
    remedy: 'Start the stub, and look at the port. The error says what the system said.',
  },
  RSP_NO_PROGRAM: {
    means: 'The stub has no program: it has ended, or was not started.',
    remedy: 'Start the program at the stub.',
  },
  RSP_NO_TARGET_DESCRIPTION: {
    means: 'The stub does not describe its registers, and the one asked for is not among those that are always there.',
    remedy: 'Take a stub that describes them: QEMU, gdbserver, OpenOCD.',
  },
  RSP_PROTOCOL: {
    means: 'What answers does not speak the GDB remote serial protocol, or broke it.',
    remedy: 'Look at the port. On a noisy line lower the speed.',
  },
  RSP_REPLAY_DIVERGED: {
    means: 'The replay asks for something else than the recording has.',
    remedy: 'Replay with the command, the options and the ELF of the recording.',
  },
  RSP_REPLAY_ENDED: {
    means: 'The recording of the wire ends here.',
    remedy: 'It was cut off, or its client left: record it again.',
  },
  RSP_REPLAY_UNREADABLE: {
    means: 'The file is not a recording of the wire.',
    remedy: 'Give a file that `--record-wire` has written.',
  },
  RSP_TIMEOUT: {
    means: 'The stub did not answer in time.',
    remedy: 'Look whether the target hangs. A slow probe or a slow link needs a longer `--timeout`.',
  },
  RSP_WRITE_REFUSED: {
    means: 'The stub refused to write a register, so the program may have gone wrong.',
    remedy: 'Start the target again, and leave the function out of `--probe`.',
  },
  RUNTIME_UNKNOWN: {
    means: 'No runtime has the name that `--runtime` gives.',
    remedy: 'Give one of the names in the message, or leave `--runtime` out: all are asked.',
  },
  ATTACH_NO_PROCESS: {
    means: 'There is no process of that number, or it ended, or began another program, while it was attached to.',
    remedy: '`pgrep -a NAME` shows the numbers of those that run.',
  },
  GDBSERVER_FAILED: {
    means: '`gdbserver` could not attach to the process, or could not start the program.',
    remedy: 'See its last lines in the error. Attaching needs the same user and `kernel.yama.ptrace_scope` 0, or root.',
  },
  RUN_EXITED: {
    means: 'The program to run ended before the guest was started.',
    remedy: 'See its last lines in the error.',
  },
  RUN_HAS_STUB: {
    means: 'The command line of QEMU asks for a stub, and `rsptrace run` adds its own.',
    remedy: 'Leave `-s` or `-gdb` out, or start QEMU yourself and use `--remote`.',
  },
  RUN_KILLED: {
    means: 'A signal ended the program, or its `gdbserver` was ended from outside, while it was traced.',
    remedy: 'Look who killed it: the system may be short of memory.',
  },
  RUN_NOT_FOUND: {
    means: 'The program to run, or the `gdbserver` that it is run under, is not installed or cannot be started.',
    remedy: 'Install it; the error names the Debian package of a QEMU. `apt install gdbserver`.',
  },
  RUN_NO_ELF: {
    means: '`rsptrace run` was not told which ELF runs, and QEMU has no `-kernel`.',
    remedy:
      'Name the ELF: `rsptrace run kernel.elf -- qemu-system-riscv64 ...`, or have `-kernel kernel.elf` behind `--`.',
  },
  RUN_NOT_LOADABLE: {
    means: 'QEMU would load the kernel where no machine has memory, because its ELF has no load addresses of its own.',
    remedy: 'Have QEMU boot a flat binary: `objcopy -O binary kernel.elf kernel.bin`, then `-kernel kernel.bin`.',
  },
  RUN_NOT_DETERMINISTIC: {
    means: "`--deterministic` was asked for a QEMU that runs on the host's processor, which counts no instructions.",
    remedy: 'Leave `-enable-kvm` and `-accel kvm` out, or `--deterministic`.',
  },
  RUN_NO_COMMAND: {
    means: '`rsptrace run` was given no command.',
    remedy:
      'Put it behind `--`: `rsptrace run kernel.elf -- qemu-system-riscv64 -M virt -nographic -kernel kernel.elf`.',
  },
  SCRATCH_CLOSED: {
    means: 'The memory shared with QEMU was closed or cut off.',
    remedy: 'QEMU has ended, or its file was truncated: start it again.',
  },
  SCRATCH_NO_SYMBOL: {
    means: 'The program has no static that `--scratch-symbol` names.',
    remedy: 'Make it a static with `#[unsafe(no_mangle)]` and `#[used]`.',
  },
  SCRATCH_SYNTAX: {
    means: 'The value of `--scratch` is not ADDR,SIZE.',
    remedy: 'Write it as in `--scratch 0x87000000,1M`.',
  },
  SCRATCH_UNAVAILABLE: {
    means: 'The target offers no memory that nobody else owns.',
    remedy: 'Name some with `--scratch` or `--scratch-symbol`, or take `--engine stop`.',
  },
  SCRATCH_UNUSABLE: {
    means:
      'The memory that the user named for the engine cannot be used: it is too small, does not keep what is written, or is in use.',
    remedy:
      'See the reason in the error. 4 KiB for data and about 300 bytes a probe for code suffice; `--engine stop` needs none.',
  },
  SAMPLES_UNAVAILABLE: {
    means: 'Stacks cannot be sampled, because the target plays back what has happened, or cannot be interrupted.',
    remedy: 'Leave `sample:` out. Start a process by gdbserver itself, or with `setsid`.',
  },
  STACKS_UNAVAILABLE: {
    means: '`--bt` records who polls, and no poll is traced.',
    remedy: "Add `--probe 'poll:GLOB'`, or leave `--bt` out.",
  },
  SVG_FAILED: {
    means: 'Graphviz cannot draw the graph, or it has too many Futures.',
    remedy: 'Name some of them with a glob, or take `--dot`, and draw it with another Graphviz.',
  },
  TARGET_RESTARTED: {
    means: 'The target was started anew while the link was broken.',
    remedy: 'Start the recording again.',
  },
  TARGET_STUCK: {
    means: 'A single step does not move the target, or it keeps stopping where no probe is.',
    remedy:
      'Leave the function that the error names out of `--probe`, or start the machine by itself and use `--remote`.',
  },
  TRACE_DAMAGED: {
    means: 'A saved trace has bytes that no trace has.',
    remedy: 'Record it again, or read what is before the damage: the error names the byte.',
  },
  TRACE_FOREIGN: {
    means: 'A file is read as a trace and is none that can be read back.',
    remedy: 'Give a `.pftrace` or `.pftrace.gz`; other formats are made of these by `rsptrace convert`.',
  },
  TRACE_NEWER: {
    means: 'A saved trace was written by a newer rsptrace.',
    remedy: 'Install that version of rsptrace.',
  },
  TRACE_NO_MATCH: {
    means: 'Nothing in a saved trace has the name, or the time, that an option asks for.',
    remedy: 'Take a name that `rsptrace report` lists, or a glob.',
  },
  TRACE_TOO_LARGE: {
    means: 'A packed trace unpacks to far more than a recording does: it is damaged, or made to be slow to read.',
    remedy: 'Record it again; where you trust it, set `RSPTRACE_BUDGET=10` to allow ten times as much.',
  },
  TRACE_UNKNOWN_FORMAT: {
    means: 'No trace format goes by the extension of the file.',
    remedy: 'Take one of the extensions that the error lists.',
  },
  TRACE_UNREADABLE: {
    means: 'A saved trace cannot be opened or read.',
    remedy: 'Look at the path and at who may read the file.',
  },
  TRACE_WRITE_FAILED: {
    means: 'The trace cannot be written any further, for instance because the disk is full.',
    remedy: 'Make room. What was written before is kept and can be opened.',
  },
  TYPE_UNKNOWN: {
    means: 'The program has no type of that name.',
    remedy: 'Write the name as Rust does: `exec::Task`, `Vec<u8>`.',
  },
  UNTIL_NO_FUNCTION: {
    means: '`--until` names no function of the program.',
    remedy: 'Give its symbol, or its path with `*` for what you do not know.',
  },
  USAGE: {
    means: 'An option, a value or a command on the command line is wrong.',
    remedy: 'See `rsptrace COMMAND --help`.',
  },
  WATCH_NOT_YET: {
    means: 'Pointers lead to the watched place, and the program has not set them yet.',
    remedy: 'Attach with `--remote` when the program has run, or watch the pointer itself.',
  },
  WATCH_NO_PLACE: {
    means: 'What is to be watched is a value, not a place in memory.',
    remedy: 'Say how long it is (`watch:0x80001000,8`), or what type lies there.',
  },
  WATCH_OVERLAP: {
    means: 'Two watched places share bytes.',
    remedy: 'For reads and writes one is enough: `watch:NAME:rw`.',
  },
  WATCH_REFUSED: {
    means: 'The stub refused a watchpoint.',
    remedy: 'Watch fewer or smaller places: hardware has few watchpoints, and some stubs have none.',
  },
  WATCH_SIZE: {
    means: 'The watched place has a size that no watchpoint covers.',
    remedy: 'Watch 1, 2, 4 or 8 bytes: a member, or ADDRESS,SIZE.',
  },
} as const satisfies Record<string, { readonly means: string; readonly remedy: string }>;

/**
 * A code of a program or plug-in that uses the library, such as `my-runtime:NO_TASKS`: its own name, a colon, its own
 * code. No code of rsptrace has a colon, so the two never meet.
 */
export type OwnErrorCode = `${string}:${string}`;

export type ErrorCode = keyof typeof errorCodes | OwnErrorCode;
