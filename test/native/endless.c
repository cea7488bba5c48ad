// A program for tests that runs until it is killed: four threads call functions, one of them recursive, and one, or more, nap between two calls. A line on
// stdout every 20 ms has how many calls were made. Built by the test.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

/* So many threads never nap. */
#ifndef BUSY
#define BUSY 3
#endif

static volatile long made[4];

__attribute__((noinline)) long leaf(long a) {
  __asm__ volatile("" : "+r"(a));
  return a * 3 + 1;
}

__attribute__((noinline)) long deep(long n) {
  long below = n > 0 ? deep(n - 1) : 0;
  __asm__ volatile("" : "+r"(below));
  return leaf(below) + n;
}

__attribute__((noinline)) void nap(void) {
  struct timespec time = {0, 100000};
  nanosleep(&time, NULL);
}

static void *calls(void *which) {
  long i = (long)which;
  for (;;) {
    if (i >= BUSY) nap();
    made[i] += (deep(i + 2) & 1) | 1;
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  for (long i = 0; i < 4; i++) pthread_create(&thread, NULL, calls, (void *)i);
  for (;;) {
    struct timespec time = {0, 20000000};
    nanosleep(&time, NULL);
    printf("made %ld %ld\n", made[0] + made[1] + made[2], made[3]);
    fflush(stdout);
  }
}
