# Runs in gdb: stops a kernel at its call of the firmware (ASKS), prints the pcs of the frames there, and goes on into the firmware, STEPS
# instructions from the trap's first. The environment says TARGET too. At the end the guest stays where it is.
import os

import gdb

for setting in ('pagination off', 'confirm off', 'tcp connect-timeout 60'):
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
trap = int(gdb.parse_and_eval('(unsigned long)$mtvec')) & ~3
gdb.execute('tbreak *%d' % trap)
gdb.execute('continue')
if os.environ['STEPS'] != '0':
    gdb.execute('stepi ' + os.environ['STEPS'])
print('FIRMWARE ' + hex(int(gdb.parse_and_eval('(unsigned long)$pc'))))
gdb.execute('disconnect')
