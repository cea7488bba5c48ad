# The baseline: what a GDB user would write. Environment: TARGET, ADDRESS, MODE (entry | exit), HITS, WARM, REGISTERS (two names).
import os
import time

import gdb

mode, hits = os.environ["MODE"], int(os.environ["HITS"])
registers = os.environ["REGISTERS"].split()
warm = int(os.environ["WARM"])
gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("target remote " + os.environ["TARGET"])
events, began = 0, None


def event():
    """Counts one event; true when it was the last."""
    global events, began
    events += 1
    if events == warm:
        began = time.monotonic()
    return events >= hits + warm


class Exit(gdb.FinishBreakpoint):
    def stop(self):
        return event()

    def out_of_scope(self):
        pass


class Entry(gdb.Breakpoint):
    def stop(self):
        frame = gdb.newest_frame()
        self.last = [int(frame.read_register(name)) for name in registers]
        if mode == "exit":
            Exit(frame, internal=True).silent = True
        return event()


Entry("*" + os.environ["ADDRESS"], internal=True)
gdb.execute("continue", to_string=True)
print("RESULT %.3f" % ((time.monotonic() - began) / hits * 1e6), flush=True)
gdb.execute("kill")
