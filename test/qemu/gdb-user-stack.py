# Runs in gdb: stops a kernel that may use its user's pages at ASKS, prints the pcs of the frames there, and takes that right from the hart
# (sstatus.SUM), so that the stub does not show these pages any more. The environment says TARGET too.
import os

import gdb

for setting in ('pagination off', 'confirm off', 'tcp connect-timeout 60', 'stack-cache off'):
    gdb.execute('set ' + setting)
gdb.execute('target remote ' + os.environ['TARGET'])
gdb.execute('tbreak *' + os.environ['ASKS'])
gdb.execute('continue')
frames = []
frame = gdb.newest_frame()
while frame is not None and len(frames) < 40:
    frames.append(hex(int(frame.pc()) & (2**64 - 1)))
    try:
        frame = frame.older()
    except gdb.error:
        break
print('FRAMES ' + ' '.join(frames))
gdb.execute('set $sstatus = $sstatus & ~(1 << 18)')
gdb.execute('maint flush dcache')
try:
    gdb.selected_inferior().read_memory(int(gdb.parse_and_eval('(unsigned long)$sp')), 8)
    print('STILL READABLE')
except gdb.MemoryError:
    print('UNREADABLE')
gdb.execute('disconnect')
