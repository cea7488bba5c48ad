#!/bin/busybox sh
# What Linux has counted itself, each between two marks in the trace.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t tmpfs tmp /tmp
for n in 1 2; do
  $b mkdir /tmp/begin$n
  echo BEGIN $n
  $b cat /proc/interrupts
  $b mkdir /tmp/middle$n
  $b cat /proc/stat
  $b mkdir /tmp/end$n
  $b ls -R /proc/self >/tmp/files
  $b sort /tmp/files | $b md5sum
done
echo END
$b poweroff -f
