section .text
global start
start: mov rax, 60
%assign i 0
%rep 50
  add rdi, i
%assign i i+1
%endrep
  vaddps ymm0, ymm1, ymm2
  jmp start
