// Runs x86-64 code from files at given addresses, on the real processor: the oracle for trampolines.
//
//   probe-host call SCRIPT OUTPUT ADDRESS:FILE...   calls functions with all registers given, and tells what they left
//   probe-host ring SCRIPT OUTPUT ADDRESS:FILE...   threads call two probed functions, one of them from signals, while another drains
//
// A script and what `call` writes are 64-bit words; their order is that in which `main` reads and writes them.
#define _GNU_SOURCE
#include <cpuid.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

typedef uint64_t u64;

static void die(const char *what) {
  perror(what);
  exit(1);
}

struct region {
  unsigned char *at, *pristine;
  size_t size;
};
static struct region regions[16];
static int region_count;

static unsigned char *slurp(const char *path, size_t *size) {
  int fd = open(path, O_RDONLY);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) < 0) die(path);
  unsigned char *bytes = malloc(st.st_size + 1);
  if (read(fd, bytes, st.st_size) != st.st_size) die(path);
  close(fd);
  *size = st.st_size;
  return bytes;
}

static void map_region(char *spec) {
  struct region *r = &regions[region_count++];
  char *colon;
  void *at = (void *)strtoull(spec, &colon, 16);
  r->pristine = slurp(colon + 1, &r->size);
  r->at = mmap(at, r->size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (r->at != at) die(spec);
  memcpy(r->at, r->pristine, r->size);
}

static void reset(void) {
  for (int i = 0; i < region_count; i++) memcpy(regions[i].at, regions[i].pristine, regions[i].size);
}

// In the order in which instructions number registers, then eflags, then xmm0 to xmm15.
u64 in[16 + 1 + 32], out[16 + 1 + 32], function, host_stack;
void run_case(void);
extern char came_back[];
__asm__(
    ".globl run_case\nrun_case:\n"
    " push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " mov %rsp, host_stack(%rip)\n"
    ".set n, 0\n.irp x,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqu in+136+n(%rip), %xmm\\x\n.set n, n+16\n.endr\n"
    " push in+128(%rip)\n popfq\n"
    ".set n, 0\n.irp r,rax,rcx,rdx,rbx,rsp,rbp,rsi,rdi,r8,r9,r10,r11,r12,r13,r14,r15\n mov in+n(%rip), %\\r\n.set n, n+8\n.endr\n"
    " jmp *function(%rip)\n"
    ".globl came_back\ncame_back:\n"
    ".set n, 0\n.irp r,rax,rcx,rdx,rbx,rsp,rbp,rsi,rdi,r8,r9,r10,r11,r12,r13,r14,r15\n mov %\\r, out+n(%rip)\n.set n, n+8\n.endr\n"
    " mov host_stack(%rip), %rsp\n"
    " pushfq\n pop out+128(%rip)\n"
    " push $2\n popfq\n"
    ".set n, 0\n.irp x,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqu %xmm\\x, out+136+n(%rip)\n.set n, n+16\n.endr\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

// An interrupt overwrites what lies below the stack pointer and calls a probed function. It comes after the n-th instruction of the
// trampolines, or after every one, but not more than so often after the same: who claims tries again until it is not interrupted.
// With no function to call the interrupted one never goes on.
static u64 interrupted_from, interrupted_to, interrupt, interrupt_data, most_each, interrupts, only, steps;
static unsigned char interrupted[0x4000];

// All that there was before the only interrupt of a case came, so that the next case can go on from there as if it had not come. Else a case for each of
// n instructions would take n * n steps.
static struct {
  int taken;
  u64 steps;
  gregset_t registers;
  struct _libc_fpstate xmm;
  unsigned char *bytes[16];
} moment;

static void keep_moment(ucontext_t *c) {
  moment.taken = 1;
  moment.steps = steps;
  memcpy(moment.registers, c->uc_mcontext.gregs, sizeof moment.registers);
  memcpy(&moment.xmm, c->uc_mcontext.fpregs, sizeof moment.xmm);
  for (int i = 0; i < region_count; i++) {
    if (!moment.bytes[i]) moment.bytes[i] = malloc(regions[i].size);
    memcpy(moment.bytes[i], regions[i].at, regions[i].size);
  }
}

static void on_go_back(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)info;
  ucontext_t *c = context;
  for (int i = 0; i < region_count; i++) memcpy(regions[i].at, moment.bytes[i], regions[i].size);
  memcpy(c->uc_mcontext.gregs, moment.registers, sizeof moment.registers);
  memcpy(c->uc_mcontext.fpregs, &moment.xmm, sizeof moment.xmm);
  steps = moment.steps;
}

// In place of a case's function, on a stack of its own: the regions are overwritten meanwhile.
static void go_back(void) { raise(SIGUSR2); }
static u64 own_stack[0x2000];

static void on_step(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)info;
  greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
  const u64 tf = 0x100;
  u64 rip = g[REG_RIP];
  if (rip < interrupted_from || rip >= interrupted_to) return;
  steps++;
  if (only ? steps != only : interrupted[rip - interrupted_from] == most_each) return;
  if (only) keep_moment(context);
  interrupted[rip - interrupted_from]++;
  interrupts++;
  if (!interrupt) {
    g[REG_RIP] = (u64)came_back;
    return;
  }
  memset((char *)g[REG_RSP] - 128, 0xa5, 128);
  ((void (*)(u64, u64, u64))interrupt)(interrupts - 1, rip, interrupt_data);
  if (only) g[REG_EFL] &= ~tf;
}

static u64 *script;
static u64 next(void) { return *script++; }

/* Of the processor that this thread stays on from now on. */
static u64 apic(void) {
  cpu_set_t one;
  unsigned a, b, c, d;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof one, &one) || !__get_cpuid(1, &a, &b, &c, &d)) exit(1);
  return b >> 24;
}

static void calls(FILE *output) {
  struct {
    u64 at, size;
  } watch[16];
  u64 fs, watches = next();
  for (u64 i = 0; i < watches; i++) watch[i].at = next(), watch[i].size = next();
  interrupted_from = next(), interrupted_to = next(), interrupt = next(), interrupt_data = next(), most_each = next();
  if (interrupted_to - interrupted_from > sizeof interrupted) exit(1);
  struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, 0);
  action.sa_sigaction = on_go_back;
  sigaction(SIGUSR2, &action, 0);
  __asm__("mov %%fs:0, %0" : "=r"(fs));
  u64 head[3] = {fs, apic(), (u64)came_back};
  fwrite(head, 8, 3, output);
  for (u64 cases = next(); cases > 0; cases--) {
    enum { as_it_is, from_reset, from_moment } how = next();
    int goes_on = how == from_moment && moment.taken;
    if (how != as_it_is && !goes_on) reset();
    function = next();
    only = next();
    for (u64 writes = next(); writes > 0; writes--) {
      u64 at = next(), value = next();
      if (!goes_on) *(u64 *)at = value;
    }
    memcpy(in, script, sizeof in);
    script += sizeof in / 8;
    // An interrupt that never came comes no more after more instructions: without single steps.
    if (how == from_moment) in[16] &= ~0x100;
    if (goes_on) function = (u64)go_back, in[4] = (u64)(own_stack + 0x1ff0) - 8;
    moment.taken = 0;
    *(u64 *)in[4] = (u64)came_back;
    interrupts = steps = 0;
    memset(interrupted, 0, sizeof interrupted);
    run_case();
    fwrite(out, 8, sizeof out / 8, output);
    fwrite(&interrupts, 8, 1, output);
    for (u64 i = 0; i < watches; i++) fwrite((void *)watch[i].at, 1, watch[i].size, output);
  }
}

// What the client does, without a stub: see src/arch/probe-code.ts.
struct control {
  volatile u64 head, pad[7], limit, unattended, dropped, spins, outer, plan, pad2[2];
  u64 *volatile segments[64];
};
static struct control *control;
static u64 by_call, by_signal, threads, iterations, slot, segment, capacity, signal_us, lazy, hooked;

typedef u64 (*probed)(u64 thread, u64 number, u64 mixed);
static u64 mix(u64 thread, u64 number) { return (number * 0x9e3779b97f4a7c15u) ^ (thread << 56) ^ (number >> 7); }

static __thread u64 self;
static __thread volatile u64 signalled;
static u64 wrong_results, signals[64];

static void on_timer(int sig) {
  (void)sig;
  if (signalled == iterations) return;
  u64 mixed = mix(self, signalled);
  u64 result = ((probed)by_signal)(self, signalled, mixed);
  if (result != (mixed ^ (3 * signalled))) __sync_fetch_and_add(&wrong_results, 1);
  signalled++;
}

static void *caller(void *argument) {
  self = (u64)argument;
  signalled = 0;
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
  event._sigev_un._tid = syscall(SYS_gettid);
  struct itimerspec every = {.it_interval = {0, signal_us * 1000}, .it_value = {0, signal_us * 1000}};
  if (signal_us && (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, 0))) die("timer");
  for (u64 i = 0; i < iterations; i++) {
    u64 mixed = mix(self, i);
    if (((probed)by_call)(self, i, mixed) != (mixed ^ (3 * i))) __sync_fetch_and_add(&wrong_results, 1);
  }
  if (signal_us) timer_delete(timer);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, 0);
  signals[self] = signalled;
  return 0;
}

// Records: claim, id (1 and 2: the call's entry and exit; 3 and 4: the signal's), thread, number, mixed, result, kept number, time.
// By thread and id: the claim under which each number came.
static u64 *claims[64][5];
static u64 events, torn, twice;

static void consume(const u64 *record, u64 claim) {
  u64 id = record[1], is_exit = id == 2 || id == 4;
  // At an exit the arguments are gone, but for those that were kept.
  u64 thread = is_exit ? record[7] : record[2], number = is_exit ? record[6] : record[3];
  u64 value = is_exit ? record[5] ^ (3 * number) : record[4];
  events++;
  if (id < 1 || id > 4 || thread >= threads || number >= iterations || value != mix(thread, number)) torn++;
  else if (claims[thread][id][number]) twice++;
  else claims[thread][id][number] = claim;
}

struct held {
  u64 *bytes, base, left;
  unsigned char *read;
  struct held *next;
};
static struct held *oldest;
static u64 *spare[4096], spares, held_count, most_held;

static void release(struct held **link) {
  struct held *h = *link;
  if (spares < sizeof spare / sizeof *spare) spare[spares++] = h->bytes;
  else free(h->bytes);
  *link = h->next;
  free(h->read);
  free(h);
  held_count--;
}

// Reads what is committed in segments that were taken out; lets those go in which every slot was.
static void read_held(void) {
  for (struct held **link = &oldest; *link;) {
    struct held *h = *link;
    for (u64 i = 0; i < segment / slot && h->left; i++) {
      u64 *record = h->bytes + i * slot / 8;
      if (h->read[i] || *(volatile u64 *)record != h->base + i * slot) continue;
      consume(record, h->base + i * slot);
      h->read[i] = 1;
      h->left--;
    }
    if (h->left == 0) release(link);
    else link = &h->next;
  }
}

static volatile int finished;
static u64 next_claim;

static void take(u64 slots) {
  u64 index = (next_claim / segment) % (capacity / segment);
  struct held *h = calloc(1, sizeof *h), **end = &oldest;
  h->bytes = control->segments[index];
  h->base = next_claim;
  h->left = slots;
  h->read = calloc(1, segment / slot);
  while (*end) end = &(*end)->next;
  *end = h;
  if (++held_count > most_held) most_held = held_count;
  u64 *fresh = spares ? spare[--spares] : aligned_alloc(4096, segment < 4096 ? 4096 : segment);
  control->segments[index] = fresh;
  next_claim += segment;
  __sync_synchronize();
  control->limit = next_claim + capacity;
}

static void *drainer(void *argument) {
  (void)argument;
  next_claim = capacity;
  struct timespec nap = {0, lazy * 1000};
  for (;;) {
    int last = finished;
    while (control->head >= next_claim + segment) take(segment / slot);
    read_held();
    if (last) break;
    if (lazy) nanosleep(&nap, 0);
  }
  if (control->head > next_claim) take((control->head - next_claim) / slot);
  read_held();
  return 0;
}

static void ring(FILE *output) {
  control = (struct control *)next();
  by_call = next(), by_signal = next(), threads = next(), iterations = next();
  slot = next(), segment = next(), capacity = next(), signal_us = next(), lazy = next(), hooked = next();
  for (u64 t = 0; t < threads; t++)
    for (int id = 1; id <= 4; id++) claims[t][id] = calloc(iterations, 8);
  struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, 0);
  for (u64 i = 0; i < capacity / segment; i++) {
    control->segments[i] = aligned_alloc(4096, segment < 4096 ? 4096 : segment);
    memset(control->segments[i], 0, segment);
  }
  control->head = capacity;
  control->limit = 2 * capacity;
  pthread_t drain, workers[64];
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  pthread_create(&drain, 0, drainer, 0);
  for (u64 i = 0; i < threads; i++) pthread_create(&workers[i], 0, caller, (void *)i);
  for (u64 i = 0; i < threads; i++) pthread_join(workers[i], 0);
  clock_gettime(CLOCK_MONOTONIC, &to);
  finished = 1;
  pthread_join(drain, 0);
  u64 missing = 0, backwards = 0, all_signals = 0, never = 0;
  for (struct held *h = oldest; h; h = h->next) never += h->left;
  for (u64 t = 0; t < threads; t++) {
    all_signals += signals[t];
    for (int id = 1; id <= (hooked ? 4 : 3); id += hooked ? 1 : 2) {
      u64 last = 0, *at = claims[t][id];
      for (u64 n = 0; n < (id <= 2 ? iterations : signals[t]); n++) {
        if (at[n] == 0) missing++;
        else if (at[n] < last) backwards++;
        else last = at[n];
      }
    }
  }
  fprintf(output,
          "{\"events\":%lu,\"claimed\":%lu,\"dropped\":%lu,\"unattended\":%lu,\"neverWritten\":%lu,\"torn\":%lu,\"twice\":%lu,"
          "\"missing\":%lu,\"backwards\":%lu,\"signals\":%lu,\"wrongResults\":%lu,\"mostHeld\":%lu,\"nanoseconds\":%ld}\n",
          events, (control->head - capacity) / slot, control->dropped, control->unattended, never, torn, twice, missing, backwards,
          all_signals, wrong_results, most_held, (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  size_t size;
  script = (u64 *)slurp(argv[2], &size);
  for (int i = 4; i < argc; i++) map_region(argv[i]);
  FILE *output = fopen(argv[3], "w");
  if (!output) die(argv[3]);
  if (!strcmp(argv[1], "call")) calls(output);
  else ring(output);
  return fclose(output);
}
