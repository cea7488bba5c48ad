# Runs in gdb: stops a guest at AT and writes the pcs of the frames there, innermost first and those of inlined functions left out, a JSON
# line for each stop. It stops HITS times at most; the environment says TARGET and OUT too. Then the guest stands.
import json
import os

import gdb

for setting in ('pagination off', 'confirm off', 'tcp connect-timeout 60', 'debuginfod enabled off'):
    gdb.execute('set ' + setting)
gdb.execute('target remote ' + os.environ['TARGET'])
place = gdb.Breakpoint('*' + os.environ['AT'])


def chain():
    frames = []
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.type() != gdb.INLINE_FRAME:
            frames.append(hex(int(frame.pc()) & (2**64 - 1)))
        frame = frame.older()
    return frames


with open(os.environ['OUT'], 'w') as out:
    for _ in range(int(os.environ['HITS'])):
        try:
            gdb.execute('continue', to_string=True)
        except gdb.error:
            break
        if not gdb.selected_inferior().pid:
            break
        out.write(json.dumps(chain()) + '\n')
if gdb.selected_inferior().pid:
    place.delete()
    gdb.execute('disconnect')
