// gdb as the oracle for lines: where its breakpoints lie, and how often they are hit while a guest runs to its end.
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

export interface GdbBreakpoint {
  readonly hits: number;
  readonly addresses: readonly bigint[];
}

/** QEMU's step does nothing on x86 where an interrupt is pending: gdb then counts a stop with the same registers twice. */
const script = (elf: string, socket: string, lines: readonly string[]): string => `
set pagination off
set confirm off
file ${elf}
target remote ${socket}
python
import gdb, json

class Line(gdb.Breakpoint):
    last = None
    seen = 0
    def stop(self):
        state = gdb.execute('info registers', to_string=True)
        if state != Line.last:
            self.seen += 1
        Line.last = state
        return False

found = [Line(line) for line in ${JSON.stringify(lines)}]
try:
    gdb.execute('continue')
except gdb.error:
    pass
for one in found:
    print('@@' + json.dumps({'hits': one.seen, 'addresses': [hex(place.address) for place in one.locations]}))
end
`;

/** Runs a frozen guest to its end with a breakpoint on each line. */
export async function gdbHits(
  folder: string,
  elf: string,
  socket: string,
  lines: readonly string[],
): Promise<GdbBreakpoint[]> {
  const path = join(folder, 'hits.gdb');
  writeFileSync(path, script(elf, socket, lines));
  // QEMU makes its socket a moment after it was started.
  for (let tries = 0; !existsSync(socket) && tries < 500; tries++) await setTimeout(20);
  const { stdout, stderr } = await promisify(execFile)('gdb-multiarch', ['-nx', '-batch', '-x', path], {
    encoding: 'utf8',
    timeout: 400_000,
    maxBuffer: 1 << 28,
  });
  const told = stdout.split('\n').filter((line) => line.startsWith('@@'));
  if (told.length !== lines.length) throw new Error(`gdb did not end well:\n${stdout}${stderr}`);
  return told.map((line) => {
    const { hits, addresses } = JSON.parse(line.slice(2)) as { hits: number; addresses: string[] };
    return { hits, addresses: addresses.map(BigInt) };
  });
}
