volatile long sum;

/* Optimised, so that the debug info tells where x is, although nothing reads it. */
__attribute__((noipa)) void take(double x, long n) { sum += n; }
