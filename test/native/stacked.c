// A program for tests: functions with arguments on the stack that return in several ways. It counts their calls and says at the end how many there
// were, besides a sum that goes wrong where an argument, a result or a register does.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define F __attribute__((noipa)) static long
#define SEVEN long a, long b, long c, long d, long e, long f, long g
static __thread long calls[8];
static long all[8];
static const char *const names[8] = { "many", "deep", "tail", "plain", "struck", "vary", "leaves", "onward" };
enum { many_, deep_, tail_, plain_, struck_, vary_, leaves_, onward_ };
struct block { long words[5]; };
static __thread jmp_buf out;

// No return address of it may be hooked, and none is: several returns, with registers to restore and without.
F many(SEVEN, long h) {
  calls[many_]++;
  if (a < 0) return h;
  if ((b ^ a) % 7 == 0) return a * 2 + g;
  long s = 0;
  for (long i = 0; i < b % 5; i++) s += a * i ^ c + d;
  return s + e - f * g + h;
}
F deep(long n, SEVEN) {
  calls[deep_]++;
  if (n == 0) return a + g;
  return deep(n - 1, b, c, d, e, f, g, a) + many(a, b, c, d, e, f, g, n) % 1000;
}
F plain(long x, long y) { calls[plain_]++; return x * 3 ^ y; }
/// Its last call is a jump, to a function without arguments on the stack.
F tail(SEVEN) { calls[tail_]++; if (g % 4 == 3) return many(b, c, d, e, f, g, a, 1) + 1; return plain(a + g, b - c * d + e + f); }
/// Its last call is a jump to one with some.
F onward(SEVEN, long h) { calls[onward_]++; return many(h, g, f, e, d, c, b, a); }
F struck(struct block b, int i) { calls[struck_]++; return b.words[i % 5] + i; }
F vary(int n, ...) {
  calls[vary_]++;
  va_list l;
  va_start(l, n);
  long s = 0;
  while (n-- > 0) s = s * 3 + va_arg(l, long);
  va_end(l);
  return s;
}
/// Does not always return.
F leaves(SEVEN) { calls[leaves_]++; if (a % 3 == 0) longjmp(out, (int)g); return deep(a % 3, b, c, d, e, f, g, a); }

static long run(long times) {
  volatile long sum = 0;
  for (volatile long i = 0; i < times; i++) {
    struct block b = { { i, i * 2, i * 3, i * 5, i * 7 } };
    sum += many(i - 3, i, 2, 3, 4, 5, 6, i) + deep(i % 6, 1, 2, 3, 4, 5, 6, i) + tail(i, i + 1, 2, 3, 4, 5, i);
    sum += struck(b, (int)i) + vary((int)(i % 9), i, 2L, 3L, 4L, 5L, 6L, 7L, i + 8) + onward(1, 2, 3, 4, 5, i, 7, i % 11);
    int gone = setjmp(out);
    sum += gone ? gone : leaves(i, 2, 3, 4, 5, 6, 7 + i % 5);
  }
  for (int i = 0; i < 8; i++) __atomic_fetch_add(&all[i], calls[i], __ATOMIC_SEQ_CST), calls[i] = 0;
  return sum;
}
static void *thread(void *times) { return (void *)run((long)times); }

int main(int argc, char **argv) {
  long times = argc > 2 ? atol(argv[2]) : 10, sum = 0;
  if (argc > 1 && strcmp(argv[1], "threads") == 0) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, thread, (void *)(times + i));
    for (int i = 0; i < 4; i++) { void *one; pthread_join(threads[i], &one); sum += (long)one; }
  } else if (argc > 1 && strcmp(argv[1], "fork") == 0) {
    sum = run(times);
    fflush(stdout);
    int status, child = fork();
    if (child == 0) { long again = run(times); _exit(again == sum ? 7 : 8); }
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
  } else sum = run(times);
  printf("sum %ld\ncalls", sum);
  for (int i = 0; i < 8; i++) printf(" %s=%ld", names[i], all[i]);
  printf("\n");
}
