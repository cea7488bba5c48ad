// Ways in which programs move control, each with calls of `job` through `outer`: on stacks of their own, in children, in
// code that they write. Prints a line a kind, and how often `job` was called: in all, and by children of vfork.
//   kinds [WHEN [KIND...]]     WHEN: so many calls come first
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long calls, children;
__attribute__((noinline)) long job(long x) { calls++; __asm__ volatile("" ::: "memory"); return x + 1; }
__attribute__((noinline)) long outer(long x) { long r = job(x) + 1; __asm__ volatile("" ::: "memory"); return r; }

static char room[65536];
static volatile int signals;
static void on_signal(int n) { char here; signals += n == SIGUSR1 && &here > room && &here < room + sizeof room; outer(n); }
static void altstack(void) {
  stack_t s = {.ss_sp = room, .ss_size = sizeof room};
  struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  sigaltstack(&s, 0);
  sigaction(SIGUSR1, &a, 0);
  for (int i = 0; i < 20; i++) { outer(i); raise(SIGUSR1); }
  printf("altstack %d\n", signals);
}

static void vforked(void) {
  int sum = 0;
  for (int i = 0; i < 8; i++) {
    int status;
    pid_t child = vfork();
    if (child == 0) { children++; outer(i); if (i % 2) execl("/bin/true", "true", (char *)0); _exit(3); }
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status) + outer(i);
  }
  printf("vfork %d\n", sum);
}

/* As userfaultfd is used: a fault's handler makes the page, and the instruction is carried out again. */
static long page = 4096;
static volatile int faults;
static void on_fault(int n, siginfo_t *i, void *c) {
  (void)n, (void)c;
  faults++;
  mprotect((char *)((unsigned long)i->si_addr & ~(page - 1)), page, PROT_READ | PROT_WRITE);
  outer(1);
}
__attribute__((noinline)) long peek(long *p) { long r = *p; __asm__ volatile("nop; nop; nop; nop" ::: "memory"); return r; }
static void pages(void) {
  char *area = mmap(0, 32 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  long sum = 0;
  sigaction(SIGSEGV, &a, 0);
  for (int i = 0; i < 32; i++) sum += peek((long *)(area + i * page));
  signal(SIGSEGV, SIG_DFL);
  printf("pages %d %ld\n", faults, sum);
}

static ucontext_t home, one, two;
static volatile int turns;
static void body(int n) {
  for (int i = 0; i < 10; i++) { outer(n); turns++; swapcontext(n == 1 ? &one : &two, n == 1 ? &two : &one); job(n); }
}
static void contexts(void) {
  static char s1[65536], s2[65536];
  getcontext(&one), getcontext(&two);
  one.uc_stack.ss_sp = s1, one.uc_stack.ss_size = sizeof s1, one.uc_link = &home;
  two.uc_stack.ss_sp = s2, two.uc_stack.ss_size = sizeof s2, two.uc_link = &home;
  makecontext(&one, (void (*)(void))body, 1, 1), makecontext(&two, (void (*)(void))body, 1, 2);
  swapcontext(&home, &one);
  printf("contexts %d\n", turns);
}

/* Coroutines by hand, which yield in the middle of traced calls. */
void swap(void **from, void *to);
__asm__(".globl swap\n.type swap, @function\nswap: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n.size swap, .-swap");
static void *scheduler, *tasks[3];
static volatile int now, live = 3, yields;
static void yield(void) { yields++; swap(&tasks[now], scheduler); }
__attribute__((noinline)) long deep(int n) { long r = n ? deep(n - 1) : (yield(), job(n)); __asm__ volatile("" ::: "memory"); return r + 1; }
static void task(void) { for (int i = 0; i < 5; i++) deep(3 + now); live--; for (;;) yield(); }
static void stacks(void) {
  static char own[3][32768] __attribute__((aligned(16)));
  for (int i = 0; i < 3; i++) {
    void **top = (void **)(own[i] + sizeof own[i]) - 2;
    *top = (void *)task, tasks[i] = top - 6;
  }
  while (live) for (now = 0; now < 3; now++) swap(&scheduler, tasks[now]);
  printf("stacks %d\n", yields);
}

static void jit(void) {
  unsigned char code[] = {0x48, 0x83, 0xec, 8, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
  void *to = (void *)outer;
  long sum = 0;
  memcpy(code + 6, &to, 8);
  for (int k = 0; k < 5; k++) {
    unsigned char *p = mmap(0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, code, sizeof code), mprotect(p, page, PROT_READ | PROT_EXEC);
    for (int i = 0; i < 20; i++) sum += ((long (*)(long))p)(i);
    munmap(p, page);
  }
  printf("jit %ld\n", sum);
}

/* The trap flag: it steps itself, through whatever is there. gdbserver keeps these traps to itself, so they are not counted. */
static void on_trap(int n) { (void)n; }
static void stepped(void) {
  signal(SIGTRAP, on_trap);
  for (int i = 0; i < 3; i++) {
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory");
    outer(i);
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory");
  }
  signal(SIGTRAP, SIG_DFL);
  printf("stepped\n");
}

static void limit(int what, long most) {
  struct rlimit l = {most, most};
  printf("limit %d\n", setrlimit(what, &l));
  char *p = malloc(1 << 20);
  for (int i = 0; i < 20; i++) { outer(i); memset(p, i, 1 << 20); }
}
static void of_stack(void) { limit(RLIMIT_STACK, 65536); }
static void of_memory(void) { limit(RLIMIT_AS, 256 << 20); }
static void of_files(void) { limit(RLIMIT_FSIZE, 4096), limit(RLIMIT_NOFILE, 8); }

static const struct { const char *name; void (*run)(void); } kinds[] = {
  {"altstack", altstack}, {"vfork", vforked}, {"pages", pages}, {"contexts", contexts}, {"stacks", stacks}, {"jit", jit},
  {"stepped", stepped}, {"of_files", of_files}, {"of_stack", of_stack}, {"of_memory", of_memory}};
int main(int c, char **v) {
  for (int i = c > 1 ? atoi(v[1]) : 0; i > 0; i--) outer(i);
  for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    int asked = c < 3;
    for (int i = 2; i < c; i++) asked |= !strcmp(v[i], kinds[k].name);
    if (asked) kinds[k].run();
  }
  printf("calls %ld children %ld\n", calls, children);
  return 0;
}
