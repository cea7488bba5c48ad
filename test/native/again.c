// A program for tests: one function is left by longjmp and called again from the same place, the other jumps to its own first instruction. It
// counts their calls and says at the end how many there were.
#include <setjmp.h>
#include <stdio.h>

long spin(long turns);
__asm__(".text\n.globl spin\n.type spin, @function\nspin:\n  dec %rdi\n  jg spin\n  mov %rdi, %rax\n  ret\n.size spin, . - spin\n");

static jmp_buf out;
static long agains;
__attribute__((noipa)) static long again(long n) {
  agains++;
  if (n % 3 != 0) longjmp(out, (int)n);
  return n;
}

int main(void) {
  volatile long spins = 0, sum = 0;
  for (volatile long n = 0; n < 60; n++) {
    if (setjmp(out) == 0) sum += again(n);
  }
  for (volatile long n = 0; n < 60; n++) {
    spins++;
    sum += spin(n % 4);
  }
  printf("calls again=%ld spin=%ld\n", agains, spins);
  return sum < 0;
}
