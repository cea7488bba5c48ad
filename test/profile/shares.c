/* Four threads that spend 50, 30 and 20 % of their time in three functions, and one that waits. */
#include <pthread.h>
#include <unistd.h>

static void __attribute__((noinline)) burn(long count) {
    for (volatile long i = count; i > 0; i--) {
    }
}
static void __attribute__((noinline)) burn_half(void) { burn(50000); __asm__(""); }
static void __attribute__((noinline)) burn_third(void) { burn(30000); __asm__(""); }
static void __attribute__((noinline)) burn_fifth(void) { burn(20000); __asm__(""); }

static void *work(void *unused) {
    for (;;) {
        burn_half();
        burn_third();
        burn_fifth();
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    /* A server that is killed leaves its program running. */
    alarm(100);
    for (int i = 0; i < 4; i++) pthread_create(&thread, 0, work, 0);
    for (;;) pause();
}
