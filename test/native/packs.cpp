// A program for tests: the arguments of a parameter pack, more than registers have room for. It prints how often its functions were called, and
// a sum that goes wrong where an argument does.
#include <cstdio>

static long calls[2];

template <typename... Args> __attribute__((noipa)) static long packed(long first, Args &&...args) {
  calls[0]++;
  return ((args + first) ^ ... ^ first);
}
__attribute__((noipa)) static long plain(long a, long b) { calls[1]++; return a * 3 ^ b; }

int main(int argc, char **) {
  long sum = 0;
  for (long i = 0; i < 200 * argc; i++) {
    short small = (short)i;
    sum += plain(packed(i, small, 2L, i + 1, 4, 5U, 6L, sum), packed(sum, 1, i));
  }
  std::printf("calls packed=%ld plain=%ld\nsum %ld\n", calls[0], calls[1], sum);
  return 0;
}
