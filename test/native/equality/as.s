.text
.globl start
start: mov $60, %rax
.rept 50
  add $7, %rdi
  call start
.endr
.data
.asciz "text"
