/**
 * Every code that an error of rsptrace can have. docs/errors.md says what each means and the way out, which
 * `scripts/error-docs.mjs` checks. A code stays what it is, because scripts of users compare it.
 */
export const errorCodes = [
  ...(['ARCH_DECODER', 'ARCH_KNOWN', 'ARCH_MISMATCH', 'ARCH_UNSUPPORTED', 'ATTACH_NO_PROCESS'] as const),
  ...([
    'BTF_DAMAGED',
    'BUDGET_INVALID',
    'BUDGET_UNREADABLE',
    'CALLS_UNAVAILABLE',
    'CHECK_CANNOT_WRITE',
    'CLOCK_UNAVAILABLE',
  ] as const),
  ...(['CORE_NOT_CORE', 'CORE_TRUNCATED', 'CORE_UNREADABLE', 'COUNTER_UNKNOWN', 'DEBUG_FILE_MISMATCH'] as const),
  ...(['DWARF_DAMAGED', 'DWARF_MISSING', 'DWARF_RELOCATABLE', 'DWARF_SPLIT', 'DWARF_TOO_LARGE'] as const),
  ...(['DWARF_VERSION', 'ELF_CHANGED', 'ELF_DAMAGED', 'ELF_MISMATCH', 'ELF_NOT_ELF'] as const),
  ...([
    'ELF_NOT_LINKED',
    'ELF_NOT_MOVABLE',
    'ELF_TOO_COSTLY',
    'ELF_UNREADABLE',
    'ENGINE_UNAVAILABLE',
    'EXPRESSION_MEMORY',
  ] as const),
  ...(['EXPRESSION_NAME', 'EXPRESSION_OPTIMIZED_OUT', 'EXPRESSION_SYNTAX', 'EXPRESSION_TYPE'] as const),
  ...(['FDT_DAMAGED', 'FUTURES_NONE', 'FUTURES_NO_MATCH', 'GDBSERVER_FAILED', 'INPUT_DAMAGED'] as const),
  ...(['INTERNAL', 'INTERRUPTED', 'KERNEL_MOVES', 'LIBRARY_UNREADABLE', 'LOAD_ADDRESS_UNKNOWN'] as const),
  ...([
    'MEMORY_MISSING',
    'NODE_NEEDED',
    'OPEN_CANNOT_SERVE',
    'OUTPUT_CANNOT_WRITE',
    'OUTPUT_EXISTS',
    'OUTPUT_IN_USE',
  ] as const),
  ...(['OUTPUT_IS_INPUT', 'OUTPUT_TWICE', 'PAGE_TABLES_TOO_LARGE', 'PART_MISSING', 'PATCH_REFUSED'] as const),
  ...(['PLUGIN_FAILED', 'PLUGIN_UNUSABLE', 'PROBE_CONDITION', 'PROBE_INLINED', 'PROBE_NO_MATCH'] as const),
  ...(['PROBE_SYNTAX', 'PROBE_UNSAFE', 'PROGRAM_NOT_SEEN', 'RECORDS_DAMAGED', 'RECORDS_MISMATCH'] as const),
  ...(['RECORDS_MISSING', 'RING_LOST', 'RSP_BAD_ADDRESS', 'RSP_BAD_REQUEST', 'RSP_BAD_STATE'] as const),
  ...(['RSP_BAD_XML', 'RSP_BREAKPOINT_REFUSED', 'RSP_CLOSED', 'RSP_CONNECT', 'RSP_NO_PROGRAM'] as const),
  ...(['RSP_NO_TARGET_DESCRIPTION', 'RSP_PROTOCOL', 'RSP_REPLAY_DIVERGED', 'RSP_REPLAY_ENDED'] as const),
  ...(['RSP_REPLAY_UNREADABLE', 'RSP_TIMEOUT', 'RSP_WRITE_REFUSED', 'RUNTIME_UNKNOWN', 'RUN_EXITED'] as const),
  ...(['RUN_HAS_STUB', 'RUN_KILLED', 'RUN_NOT_DETERMINISTIC', 'RUN_NOT_FOUND', 'RUN_NOT_LOADABLE'] as const),
  ...(['RUN_NO_COMMAND', 'RUN_NO_ELF', 'SAMPLES_UNAVAILABLE', 'SCRATCH_CLOSED', 'SCRATCH_NO_SYMBOL'] as const),
  ...(['SCRATCH_SYNTAX', 'SCRATCH_UNAVAILABLE', 'SCRATCH_UNUSABLE', 'SETTINGS_INVALID', 'STACKS_UNAVAILABLE'] as const),
  ...(['SVG_FAILED'] as const),
  ...(['TARGET_RESTARTED', 'TARGET_STUCK', 'TRACE_DAMAGED', 'TRACE_FOREIGN', 'TRACE_VERSION'] as const),
  ...(['TRACE_NO_MATCH', 'TRACE_TOO_LARGE', 'TRACE_UNKNOWN_FORMAT', 'TRACE_UNREADABLE'] as const),
  ...(['TRACE_WRITE_FAILED', 'TYPE_UNKNOWN', 'UNTIL_NO_FUNCTION', 'USAGE', 'WATCH_NOT_YET'] as const),
  ...(['WATCH_NO_PLACE', 'WATCH_OVERLAP', 'WATCH_REFUSED', 'WATCH_SIZE'] as const),
] as const;

/**
 * A code of a program or plug-in that uses the library, such as `my-runtime:NO_TASKS`: its own name, a colon, its own
 * code. No code of rsptrace has a colon, so the two never meet.
 */
export type OwnErrorCode = `${string}:${string}`;

export type ErrorCode = (typeof errorCodes)[number] | OwnErrorCode;
