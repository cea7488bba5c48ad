import type { LinuxModel } from '../linux.js';

/** Numbers of include/uapi/asm-generic/unistd.h in Linux. */
export const linux: LinuxModel = { mappingCalls: [222, 226, 216, 288] };
