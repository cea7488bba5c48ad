// A program for tests: counts its own calls and says at the end how many there were, besides sums that go wrong where a register does. What it
// does is its first argument; `wait` goes on, and `loop` ends, when the file exists that is its second.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __thread unsigned long leafs, middles, outers, fibs, jobs, naps;
static unsigned long all_leafs, all_middles, all_outers, all_fibs, all_jobs, all_naps;
static unsigned long slept_inside, slept_outside;

// Few registers each: with -fipa-ra their callers keep values in all the others.
__attribute__((noinline)) static unsigned long leaf(unsigned long x) { leafs++; return x * 3 + 1; }
__attribute__((noinline)) static unsigned long middle(unsigned long a, unsigned long b) { middles++; return leaf(a) ^ leaf(b + 1) ^ (a << 3); }
__attribute__((noinline)) static unsigned long outer(unsigned long x) {
  outers++;
  unsigned long a = x, b = x * 5, c = x * 7, d = x * 11, e = x * 13, f = x * 17, g = x * 19, h = x * 23;
  for (unsigned long i = 0; i < 3; i++) {
    a += leaf(i + x); b ^= a; c += b; d ^= c; e += d; f ^= e; g += f; h ^= g;
    h += middle(a, h);
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}
__attribute__((noinline)) static unsigned long fib(unsigned long n) {
  fibs++;
  if (n < 2) return n;
  unsigned long a = fib(n - 1), b = fib(n - 2);
  asm volatile("" : "+r"(a), "+r"(b)); // else gcc makes a loop of it
  return a + b;
}

static unsigned long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ul + time.tv_nsec;
}

__attribute__((noinline)) static unsigned long nap(unsigned long us) {
  unsigned long begun = now();
  naps++;
  usleep(us);
  slept_inside += now() - begun;
  return us;
}

/// Its child returns from it, too: 7 when it has run as it should, and its own code is what it was.
__attribute__((noinline)) static int job(const unsigned char *code) {
  jobs++;
  outer(jobs);
  fflush(stdout);
  int child = fork();
  if (child != 0) return child;
  return outer(3) == outer(3) && code[0] != 0xe9 ? -7 : -8;
}

static unsigned long run(unsigned long times) {
  unsigned long sum = 0;
  for (unsigned long i = 0; i < times; i++) sum += outer(i) + (i % 8 == 0 ? fib(6) : 0);
  return sum;
}

static void collect(void) {
  __atomic_fetch_add(&all_leafs, leafs, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&all_middles, middles, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&all_outers, outers, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&all_fibs, fibs, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&all_jobs, jobs, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&all_naps, naps, __ATOMIC_SEQ_CST);
  leafs = middles = outers = fibs = jobs = naps = 0;
}

static void *thread(void *times) {
  unsigned long sum = run((unsigned long)times);
  collect();
  return (void *)sum;
}

static void in_threads(unsigned long times) {
  pthread_t threads[4];
  unsigned long sum = 0;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, thread, (void *)(times + i));
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(threads[i], &result);
    sum += (unsigned long)result;
  }
  printf("sum %lx\n", sum);
}

static void *loop(void *file) {
  unsigned long first = run(20), same = 1;
  for (; access(file, F_OK) != 0; usleep(300)) same &= run(20) == first;
  return (void *)same;
}

/// Three threads that work until a file is there; whether they have always come to the same.
static void in_loops(const char *file) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, loop, (void *)file);
  unsigned long same = (unsigned long)loop((void *)file);
  for (int i = 0; i < 2; i++) {
    void *result;
    pthread_join(threads[i], &result);
    same &= (unsigned long)result;
  }
  printf("same %lu\n", same);
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "";
  unsigned long times = count > 2 ? strtoul(arguments[2], 0, 10) : 200;
  if (strcmp(mode, "threads") == 0) in_threads(times);
  else if (strcmp(mode, "fork") == 0) {
    printf("sum %lx\n", run(3));
    for (int i = 0; i < 4; i++) {
      int status, child = job((const unsigned char *)leaf);
      if (child < 0) _exit(-child);
      waitpid(child, &status, 0);
      printf("child %x\n", status);
    }
  } else if (strcmp(mode, "nap") == 0) {
    for (int i = 0; i < 20; i++) {
      unsigned long begun = now();
      nap(5000);
      slept_outside += now() - begun;
    }
    printf("slept %lu %lu\n", slept_inside, slept_outside);
  } else if (strcmp(mode, "wait") == 0) {
    printf("sum %lx\n", run(200));
    puts("waiting");
    fflush(stdout);
    while (access(arguments[2], F_OK) != 0) usleep(1000);
    printf("sum %lx\n", run(200));
  } else if (strcmp(mode, "loop") == 0) in_loops(arguments[2]);
  else printf("sum %lx\n", run(times));
  collect();
  printf("calls leaf=%lu middle=%lu outer=%lu fib=%lu job=%lu nap=%lu\n", all_leafs, all_middles, all_outers, all_fibs, all_jobs, all_naps);
}
