// gdb as the oracle for the arguments of functions: it stops at their entries, or behind their prologues, and prints what it finds.
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

/** One call: for each parameter the numbers in its value, in the order of the type; undefined where gdb finds none. */
export interface GdbCall {
  /** The function's address, as it was given. */
  readonly entry: string;
  readonly arguments: Readonly<Record<string, readonly string[] | null>>;
}

const script = (
  elf: string,
  socket: string,
  entries: readonly (readonly [address: string, symbol: string])[],
  until: string,
  exact: boolean,
  most: number,
) => `
set pagination off
set confirm off
set language rust
set print symbol off
file ${elf}
target remote ${socket}
python
import gdb, json
count = 0
scalars = {gdb.TYPE_CODE_INT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF}

def numbers(value):
    kind = value.type.strip_typedefs()
    if kind.dynamic:
        raise ValueError('an enum with data')
    if kind.sizeof == 0:
        return []
    if kind.code == gdb.TYPE_CODE_STRUCT:
        found = []
        for field in kind.fields():
            found += numbers(value[field])
        return found
    if kind.code in scalars:
        return [str(int(value))]
    raise ValueError(kind.code)

def state(frame):
    return [str(frame.read_register(register)) for register in frame.architecture().registers('general')]

last = None
EXACT = ${exact ? 'True' : 'False'}

class Entry(gdb.Breakpoint):
    def __init__(self, address, symbol):
        # By its mangled name gdb finds the end of a function's prologue.
        super().__init__('*' + address if EXACT else symbol)
        self.entry = address

    def stop(self):
        global count, last
        # What is inlined at the stop has frames and blocks of its own; they are passed over.
        frame = gdb.newest_frame()
        while frame.type() == gdb.INLINE_FRAME:
            frame = frame.older()
        # Where an interrupt is pending, QEMU's step on x86 does nothing: gdb takes it for done and stops at the same call once more.
        now = [self.entry] + state(gdb.selected_frame())
        if now == last:
            return False
        last = now
        found = {}
        try:
            block = frame.block()
            while not block.superblock.is_static:
                block = block.superblock
        except RuntimeError:
            # A function without debug info.
            block = []
        for symbol in block:
            if not symbol.is_argument:
                continue
            try:
                found[symbol.name] = numbers(symbol.value(frame))
            except Exception:
                found[symbol.name] = None
        print('@@' + json.dumps({'entry': self.entry, 'arguments': found}))
        count += 1
        return count >= ${most}

for address, symbol in ${JSON.stringify(entries)}:
    Entry(address, symbol)
gdb.Breakpoint('*${until}')
end
continue
disconnect
`;

/**
 * Runs a frozen guest from its start to the address `until`, or through `most` calls. `exact`: stop at the first instruction, which is
 * right for optimised code; else behind the prologue.
 */
export async function gdbArguments(options: {
  readonly folder: string;
  readonly elf: string;
  readonly socket: string;
  readonly entries: readonly (readonly [address: string, symbol: string])[];
  readonly until: string;
  readonly exact: boolean;
  readonly most: number;
}): Promise<GdbCall[]> {
  const { folder, elf, socket, entries, until, exact, most } = options;
  const path = join(folder, 'arguments.gdb');
  writeFileSync(path, script(elf, socket, entries, until, exact, most));
  // QEMU makes its socket a moment after it was started.
  for (let tries = 0; !existsSync(socket) && tries < 500; tries++) await setTimeout(20);
  const { stdout, stderr } = await promisify(execFile)('gdb-multiarch', ['-nx', '-batch', '-x', path], {
    encoding: 'utf8',
    timeout: 400_000,
    maxBuffer: 1 << 28,
  });
  const lines = stdout.split('\n').filter((line) => line.startsWith('@@'));
  if (lines.length === 0) throw new Error(`gdb saw no call:\n${stdout}${stderr}`);
  return lines.map((line) => JSON.parse(line.slice(2)) as GdbCall);
}
