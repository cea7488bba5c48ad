#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct hfa2 { double a, b; };
struct hfa3 { float a, b, c; };
struct hfa4 { double a, b, c, d; };
struct mixed { double a; long b; };
struct big { long a[5]; };
long calls, fsum;
__attribute__((noinline)) long fib(long n) { calls++; return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) double add(int n, double x, float y, struct hfa2 h) { return n + x + y + h.a + h.b; }
__attribute__((noinline)) struct hfa3 three(struct hfa3 h, int k) { h.a *= k; h.b *= k; h.c *= k; return h; }
__attribute__((noinline)) struct hfa4 four(struct hfa4 h, long z) { h.d += z; return h; }
__attribute__((noinline)) struct mixed mix(struct mixed m, long z) { m.b += z; return m; }
__attribute__((noinline)) struct big large(long seed, struct big b) { for (int i = 0; i < 5; i++) b.a[i] += seed; return b; }
__attribute__((noinline)) long many(long a, long b, long c, long d, long e, long f, long g, long h, struct mixed m, long i) { return a+b+c+d+e+f+g+h+m.b+i; }
__attribute__((noinline)) __int128 wide(int a, __int128 b, long c) { return b + a + c; }
__attribute__((noinline)) double eight(double a, double b, double c, double d, double e, double f, double g, struct hfa2 h, double z) { return a+b+c+d+e+f+g+h.a+h.b+z; }
__attribute__((noinline)) long pairs(long a, long b, long c, long d, long e, long f, long g, __int128 w, long i) { return a+b+c+d+e+f+g+(long)w+i; }
/* Its pointer has a tag in the top byte. */
__attribute__((noinline)) long behind(struct mixed *m) { return m->b; }
__attribute__((noinline)) int compare(const void *a, const void *b) { fsum++; return *(int*)a - *(int*)b; }
/* As LLVM has it: call frame information by the frame pointer, which says nothing of the epilogue. */
void leaves(void);
asm(".type leaves, %function\nleaves:\n .cfi_startproc\n stp x29, x30, [sp, #-16]!\n mov x29, sp\n"
    " .cfi_def_cfa x29, 16\n .cfi_offset x30, -8\n .cfi_offset x29, -16\n nop\n ldp x29, x30, [sp], #16\n"
    " nop\n nop\n ret\n .cfi_endproc\n .size leaves, . - leaves");
int main(int argc, char **argv) {
  long r = fib(12);
  double d = 0;
  for (int i = 0; i < 5; i++) {
    struct hfa2 h = { i, i * 2 }; d += add(i, 1.5, 2.25f, h);
    struct hfa3 t = { 1, 2, 3 }; d += three(t, i).c;
    struct hfa4 q = { i, i + 1, i + 2, i + 3 }; d += four(q, 7).d;
    struct mixed m = { 0.5, i }; d += mix(m, 4).b;
    struct big b = {{1,2,3,4,i}}; d += large(i, b).a[4];
    d += many(1,2,3,4,5,6,7,8,m,i);
    struct hfa2 s = { 8, 9 }; d += eight(1, 2, 3, 4, 5, 6, 7, s, i);
    d += pairs(1, 2, 3, 4, 5, 6, 7, i, 9);
    d += behind((struct mixed *)((unsigned long)&m | (0xa0UL + i) << 56));
    d += (long)wide(i, ((__int128)5 << 64) + i, 3);
  }
  for (volatile int i = 0; i < 8; i++) leaves();
  int v[50]; for (int i = 0; i < 50; i++) v[i] = (i * 37) % 50;
  qsort(v, 50, sizeof *v, compare);
  printf("LAB fib=%ld calls=%ld compares=%ld d=%g v0=%d\n", r, calls, fsum, d, v[49]);
  return 0;
}
