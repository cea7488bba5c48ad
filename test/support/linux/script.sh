#!/bin/busybox sh
# The load of a booted Linux: what it prints between BEGIN and END is the same each time.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t tmpfs tmp /tmp
echo BEGIN
i=0
while [ $i -lt 25 ]; do i=$((i + 1)); echo "line $i of the script" >>/tmp/lines; done
$b sort -r /tmp/lines | $b sha1sum
$b seq 2000 | $b awk '{ s += $1 } END { print s }'
for d in one two three; do $b mkdir /tmp/$d; echo $d >/tmp/$d/file; done
$b ls -R /tmp | $b grep -v lines
$b cat /tmp/*/file /no/such/file 2>&1
$b dd if=/dev/zero bs=4k count=64 2>/dev/null | $b md5sum
$b head -c 100 /proc/version | $b wc -c
$b ln -s /tmp/one/file /tmp/link && $b readlink /tmp/link
(echo in a child; exit 3); echo status $?
$b sleep 0.01 & wait; echo waited
$b test -r /proc/self/mem && $b tail -n 1 /tmp/lines
echo END
$b poweroff -f
