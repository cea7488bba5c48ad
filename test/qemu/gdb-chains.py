# Runs in gdb: stops a guest at functions and some steps behind, and writes for each stop the registers, the bytes of the stack, and the
# pcs and CFAs of the frames that gdb walks. The environment says TARGET (a stub's address), OUT (a file of JSON lines), STOPS, BREAKS
# (what to stop at), REGISTERS and SEED. At the end the guest stays where it is.
import json
import os
import random

import gdb

environment = os.environ
random.seed(int(environment['SEED']))
for setting in ('pagination off', 'confirm off', 'backtrace limit 40', 'tcp connect-timeout 60'):
    gdb.execute('set ' + setting)
gdb.execute('target remote ' + environment['TARGET'])


def number(value):
    return int(value) & (2**64 - 1)


def chain():
    frames = []
    frame = gdb.newest_frame()
    while frame is not None and len(frames) < 40:
        frames.append(hex(number(frame.pc())))
        try:
            frame = frame.older()
        except gdb.error:
            break
    return frames


def registers():
    found = {}
    for name in environment['REGISTERS'].split():
        try:
            found[name] = hex(number(gdb.parse_and_eval('$' + name).cast(gdb.lookup_type('long'))))
        except gdb.error:
            found[name] = None
    return found


def stack(low):
    # A word at a time: what lies above a stack may not be mapped.
    memory = gdb.selected_inferior()
    words = b''
    while len(words) < 1024:
        try:
            words += bytes(memory.read_memory(low + len(words), 8))
        except gdb.MemoryError:
            break
    return words.hex()


points = [gdb.Breakpoint(place) for place in environment['BREAKS'].split()]
with open(environment['OUT'], 'w') as out:
    for _ in range(int(environment['STOPS'])):
        for point in points:
            point.ignore_count = random.randrange(20)
        gdb.execute('continue', to_string=True)
        steps = random.randrange(12)
        if steps > 0:
            gdb.execute('stepi %d' % steps, to_string=True)
        low = number(gdb.parse_and_eval('$sp').cast(gdb.lookup_type('long')))
        out.write(json.dumps({'registers': registers(), 'low': hex(low), 'stack': stack(low), 'frames': chain()}) + '\n')
gdb.execute('delete')
gdb.execute('disconnect')
