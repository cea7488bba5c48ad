set sum 0
for {set i 0} {$i < 500} {incr i} { incr sum [expr {$i * $i % 17}] }
puts $sum
puts [lsort -integer -unique {5 3 9 3 1}]
puts [catch {error thrown} message]$message
puts [regsub -all {w(\d)} "w1 w2 x" {<\1>}]
exit 8
