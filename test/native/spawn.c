// A program for tests: starts children by vfork and posix_spawn, which run in its memory until they exec, while a thread of it goes on. It counts
// its calls, and says how its children end. `child`: what they run.
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long works, threads, launches, in_children;

__attribute__((noinline)) static unsigned long work(unsigned long x) { works++; return x * 3 + 1; }
__attribute__((noinline)) static unsigned long other(unsigned long x) { threads++; return x * 5 + 1; }
/// What children call before they exec, in their parent's memory.
__attribute__((noinline)) static unsigned long prepare(unsigned long x) { in_children++; return x * 7 + 1; }

static volatile int stop;
static void *thread(void *sum) {
  unsigned long x = 1;
  for (int i = 0; i < 300 || !stop; i++) {
    if (i < 300) x = other(x);
    else usleep(1000);
  }
  *(unsigned long *)sum = x;
  return 0;
}

extern char **environ;

__attribute__((noinline)) static int launch(char *self, int by_hand) {
  char *arguments[] = {self, "child", 0};
  pid_t child;
  launches++;
  if (!by_hand) return posix_spawn(&child, self, 0, 0, arguments, environ) == 0 ? child : -1;
  child = vfork();
  if (child == 0) {
    if (prepare(3) != 22 || prepare(4) != 29) _exit(99);
    execv(self, arguments);
    _exit(98);
  }
  return child;
}

int main(int count, char **arguments) {
  unsigned long sum = 0, of_thread;
  if (count > 1) {
    for (unsigned long i = 0; i < 100; i++) sum = work(sum);
    printf("child %lx\n", sum);
    return 7;
  }
  pthread_t other_thread;
  pthread_create(&other_thread, 0, thread, &of_thread);
  for (int i = 0; i < 6; i++) {
    int status;
    sum = work(sum);
    fflush(stdout);
    waitpid(launch("/proc/self/exe", i % 2), &status, 0);
    printf("ended %x\n", status);
    sum = work(sum);
  }
  stop = 1;
  pthread_join(other_thread, 0);
  printf("sums %lx %lx\n", sum, of_thread);
  printf("calls work=%lu other=%lu launch=%lu prepare=%lu\n", works, threads, launches, in_children);
}
