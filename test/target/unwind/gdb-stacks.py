# Runs in gdb: stops a guest at many places and writes, for each, the registers, the bytes of the stack, and the stack as gdb
# walks it. The environment says TARGET (a stub's socket), OUT (a file of JSON lines), STOPS, BREAKS (addresses), HANDLER (the
# trap handler: its first address and the one behind it), SHARE (of the stops that begin there), TICK (a function that it calls),
# REGISTERS and SEED.
#
# gdb knows no return from a trap, and believes call frame information that leaves out the push of the flags in inline assembly. So that
# it shows the real chain there too, it is made to: at the handler's first instruction it walks with the registers that the CPU
# has saved put back, and behind a pushf with the stack pointer above it. `plain` is what it shows without that help.
import json
import os
import random

import gdb

random.seed(int(os.environ["SEED"]))
stops = int(os.environ["STOPS"])
breaks = os.environ["BREAKS"].split()
handler, handler_end = (int(word, 16) for word in os.environ["HANDLER"].split())
share = float(os.environ["SHARE"])
tick = os.environ["TICK"]
names = os.environ["REGISTERS"].split()
is_x86 = "rip" in names
is_arm = "x30" in names

gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set language c")
gdb.execute("set backtrace past-main on")
gdb.execute("target remote " + os.environ["TARGET"], to_string=True)
try:
    top = int(gdb.parse_and_eval("(unsigned long)&__stack_top"))
except gdb.error:
    # A program, whose arguments and environment lie on top of its stack.
    top = None
inferior = gdb.selected_inferior()


# Registers are those of the selected frame, and gdb may have kept one selected that is not the innermost.
def value(name):
    gdb.newest_frame().select()
    try:
        return int(gdb.parse_and_eval("(unsigned long)$" + name)) & (2**64 - 1)
    except gdb.error:
        return None


def word(address):
    return int.from_bytes(bytes(inferior.read_memory(address, 8)), "little")


def walk():
    frames = []
    frame = gdb.newest_frame()
    while frame is not None and len(frames) < 64:
        if frame.type() != gdb.INLINE_FRAME:
            frames.append(hex(frame.pc()))
        try:
            frame = frame.older()
        except gdb.error:
            break
    return frames


def walk_with(registers):
    before = {name: value(name) for name in registers}
    for name, new in registers.items():
        gdb.execute("set var $%s = %d" % (name, new))
    frames = walk()
    gdb.newest_frame().select()
    for name, old in before.items():
        gdb.execute("set var $%s = %d" % (name, old))
    return frames


def behind_push():
    return is_x86 and bytes(inferior.read_memory(value("pc") - 1, 1)) == b"\x9c"


def truth():
    if behind_push():
        return walk_with({"rsp": value("rsp") + 8})
    return walk()


# Where the code goes on that the handler has interrupted; it holds while the handler runs.
def interrupted():
    if not is_x86:
        elr = "ELR_EL2" if is_arm and value("cpsr") >> 2 & 3 == 2 else "ELR_EL1"
        pc = value(elr) if is_arm else value("mepc") if handler < 0x80200000 else value("sepc")
        return walk_with({"pc": pc})
    sp = value("rsp")
    pc, above = word(sp), word(sp + 24)
    if bytes(inferior.read_memory(pc - 1, 1)) == b"\x9c":
        above += 8
    return walk_with({"rip": pc, "rsp": above})


def go(address):
    gdb.Breakpoint("*" + address, temporary=True)
    gdb.execute("continue", to_string=True)


def whole_stack(low):
    length = 32768 if top is None else min(top - low, 32768)
    while True:
        try:
            return bytes(inferior.read_memory(low, length))
        except gdb.MemoryError:
            if length < 2048:
                raise
            length -= 512


def record(out, chain):
    sp = value("sp")
    low = sp - 256
    stack = whole_stack(low).hex()
    registers = {name: hex(value(name)) if value(name) is not None else None for name in names}
    entry = {"registers": registers, "low": hex(low), "stack": stack, "plain": walk()}
    entry["frames"] = truth()
    # A trap came between two steps: what it interrupted is not known here.
    if chain is None and any(handler <= int(pc, 16) < handler_end for pc in entry["frames"] + entry["plain"]):
        return 0
    entry["interrupted"] = chain
    out.write(json.dumps(entry) + "\n")
    return 1


def explore(out, chain, steps, sizes):
    recorded = 0
    for _ in range(steps):
        recorded += record(out, chain)
        gdb.execute("stepi %d" % random.choice(sizes), to_string=True)
    return recorded


with open(os.environ["OUT"], "w") as out:
    count = 0
    while count < stops:
        try:
            if random.random() < share:
                go(hex(handler))
                chain = interrupted()
                count += explore(out, chain, random.randrange(1, 9), [1])
                go(tick)
                count += explore(out, chain, random.randrange(1, 9), [1])
            else:
                go(random.choice(breaks))
                count += explore(out, None, random.randrange(6, 16), [1, 1, 1, 2, 3, 7, 19])
        except gdb.error:
            break
        if not inferior.threads():
            break
if inferior.threads():
    gdb.execute("kill")
