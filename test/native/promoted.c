// A program for tests: gcc passes what pointers lead to in their place (IPA-SRA), so that arguments which are declared to fit in registers
// lie on the stack. It prints how often its functions were called, and a sum that goes wrong where an argument does.
#include <stdio.h>

struct pair { long a, b; };
static long calls[3];

__attribute__((noinline)) static long six(const struct pair *p, const struct pair *q, const struct pair *r, const struct pair *s,
                                          const struct pair *t, const struct pair *u) {
  calls[0]++;
  return p->a * q->b + r->a - s->b + t->a * u->b + p->b + q->a + r->b + s->a + t->b + u->a;
}
__attribute__((noipa)) static long eight(long a, long b, long c, long d, long e, long f, long g, long h) {
  calls[1]++;
  return a - b + c * d - e + f * g - h;
}
__attribute__((noipa)) static long plain(long a, long b) { calls[2]++; return a * 3 ^ b; }

int main(int argc, char **argv) {
  long sum = 0;
  for (long i = 0; i < 200 * argc; i++) {
    struct pair x = { i, 2 }, y = { 3, i }, z = { i + 1, i };
    sum += plain(six(&x, &y, &z, &y, &x, &z), eight(i, 2, 3, i, 5, i, 7, i * 8));
  }
  printf("calls six=%ld eight=%ld plain=%ld\nsum %ld\n", calls[0], calls[1], calls[2], sum);
  return 0;
}
