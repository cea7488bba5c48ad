// A program whose calls are known by reading it: outer 20, middle 60, leaf 141, fib 164, main 1.
#include <stdio.h>
#define OWN __attribute__((noinline, noipa))
static volatile unsigned long sink;
OWN void leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
OWN void middle(unsigned long n) { leaf(n); leaf(2 * n); }
OWN void outer(unsigned long n) { for (int i = 0; i < 3; i++) middle(n); leaf(n); }
OWN unsigned long fib(unsigned long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) {
  for (int i = 0; i < 20; i++) { outer(100); if (i % 5 == 0) sink += fib(7); }
  leaf(1);
  printf("done\n");
}
