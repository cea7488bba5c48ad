# Runs in gdb at a process: prints, as JSON, the pcs of each thread's frames by the thread's number. Left out is what is no frame of its
# own: inlined functions, and tail calls that gdb infers.
import json

import gdb

gdb.execute('set backtrace past-main on')
threads = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frames = []
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            frames.append(hex(frame.pc()))
        frame = frame.older()
    threads[thread.ptid[1]] = frames
print('THREADS ' + json.dumps(threads))
