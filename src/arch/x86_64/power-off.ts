// How x86 code ends QEMU: a write to a port of isa-debug-exit (QEMU hw/misc/debugexit.c), or to ACPI's power
// management control register, PM1a_CNT (ACPI specification, 4.8.3.2). QEMU's firmware has it at 0x604; older ones had
// it at 0xb004. Instructions are those of the Intel SDM, volume 2: MOV B8+r, OUT E6 and E7. Not seen: ports that come
// out of memory, and a triple fault.
import type { PowerOffModel } from '../machine.js';

const powerManagement = [0x604, 0xb004];

export const powerOff: PowerOffModel = {
  places(code, own) {
    const ports = new Set([...own, ...powerManagement]);
    const found: number[] = [];
    for (let at = 0; at + 3 <= code.length; at++) {
      const port = portAt(code, at);
      if (port !== undefined && ports.has(port)) found.push(at);
    }
    return found;
  },
};

/** The port that an instruction writes to, or the number that it loads into a register. */
function portAt(code: Uint8Array, at: number): number | undefined {
  const opcode = code[at] ?? 0;
  if (opcode === 0xe6 || opcode === 0xe7) return code[at + 1];
  // A prefix 66 says that 16 bits follow.
  const isShort = opcode === 0x66;
  const start = isShort ? at + 1 : at;
  if (((code[start] ?? 0) & 0xf8) !== 0xb8) return undefined;
  const low = (code[start + 1] ?? 0) | ((code[start + 2] ?? 0) << 8);
  if (isShort) return low;
  return code[start + 3] === 0 && code[start + 4] === 0 ? low : undefined;
}
