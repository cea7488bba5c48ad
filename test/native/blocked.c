#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int pipes[2];
static int epoll;
__attribute__((noinline)) static int poll_once(int depth) {
  struct epoll_event event;
  if (depth > 0) return poll_once(depth - 1) + 1;
  /* A debugger that comes interrupts it. */
  while (epoll_wait(epoll, &event, 1, -1) < 0) continue;
  return 1;
}
static void *in_epoll(void *p) { printf("%d\n", poll_once(3)); return p; }
static void *in_condition(void *p) {
  pthread_mutex_lock(&lock);
  for (;;) pthread_cond_wait(&never, &lock);
  return p;
}
static void *in_semaphore(void *p) { sem_wait(&semaphore); return p; }
static int in_compare(const void *a, const void *b) {
  char c;
  /* Behind qsort, a function of libc in the middle of the stack. */
  if (read(pipes[0], &c, 1) != 1) abort();
  return *(const int *)a - *(const int *)b;
}
static void *in_qsort(void *p) {
  int numbers[] = { 3, 1, 2 };
  qsort(numbers, 3, sizeof *numbers, in_compare);
  return p;
}
int main(void) {
  pthread_t thread;
  if (pipe(pipes) != 0 || (epoll = epoll_create1(0)) < 0) return 1;
  sem_init(&semaphore, 0, 0);
  void *(*bodies[])(void *) = { in_epoll, in_condition, in_semaphore, in_qsort };
  for (int i = 0; i < 4; i++) pthread_create(&thread, 0, bodies[i], 0);
  puts("ready");
  fflush(stdout);
  pause();
}
