// Four threads, a lock, a condition and thread-local storage of a static glibc.
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int whose;
static __thread int own;
static long sum;
__attribute__((noinline)) static int step(int n) { return ++own * n; }
static void *work(void *given) {
  long me = (long)given;
  for (int i = 0; i < 50; i++) {
    pthread_mutex_lock(&lock);
    while (whose != me) pthread_cond_wait(&turn, &lock);
    sum += step((int)me + i);
    whose = (whose + 1) % 4;
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&lock);
  }
  return (void *)(long)own;
}
int main(void) {
  pthread_t threads[4];
  void *result;
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], &result), printf("%ld\n", (long)result);
  printf("%ld\n", sum);
  return 0;
}
