// The first program: it begins the others, and itself again, forks in the middle of calls, and waits for all that it has begun.
typedef unsigned long u64;

enum { EXIT, YIELD, REPORT, FORK, EXEC, WAIT };
enum { INIT, POND, MILL };
enum { FUNCTIONS = 8, COUNTERS = 17 };

__attribute__((section(".data.first"))) static u64 counts[COUNTERS] = {0};

u64 main(u64 seed);

static inline u64 system_call(u64 number, u64 a, u64 b) {
#ifdef __riscv
  register u64 a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1) : "memory");
  return a0;
#else
  u64 result = number;
  __asm__ volatile("int $0x80" : "+a"(result) : "D"(a), "S"(b) : "memory");
  return result;
#endif
}

#ifdef __riscv
__asm__(".section .text.boot,\"ax\",@progbits\n.global _start\n_start:\n"
        ".option push\n.option norelax\nlla gp, __global_pointer$\n.option pop\n"
        "li s0, 0\ncall main\nli a7, 0\necall\n.text\n");
#else
__asm__(".section .text.boot,\"ax\",@progbits\n.global _start\n_start:\n"
        "xor %ebp, %ebp\ncall main\nmov %rax, %rdi\nxor %eax, %eax\nint $0x80\n.text\n");
#endif

static inline void count(int function) { ((volatile u64 *)counts)[function]++; }

static inline u64 fork_one(void) {
  u64 child = system_call(FORK, 0, 0);
  if (child == 0)
    for (int i = 0; i < COUNTERS; i++) ((volatile u64 *)counts)[i] = 0;
  return child;
}

/* At the same address as functions of the others. */
__attribute__((noinline, section(".text.at1"))) u64 fib(u64 n) {
  count(1);
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((noinline, section(".text.at2"))) u64 blend(u64 a, u64 b) {
  count(2);
  if (b & 1) system_call(YIELD, 0, 0);
  return (a << 7 | a >> 57) ^ b;
}

/* Forks at its depth: the child returns from all these calls, too, in its own address space. */
__attribute__((noinline)) u64 split(u64 depth, u64 *is_child) {
  count(3);
  if (depth == 0) {
    *is_child = fork_one() == 0;
    return fib(3);
  }
  u64 below = split(depth - 1, is_child);
  return blend(below, depth);
}

/* In a child that never returns from it. */
__attribute__((noinline)) void become(u64 program, u64 seed) {
  count(4);
  system_call(REPORT, (u64)counts, 0);
  system_call(EXEC, program, seed);
}

__attribute__((noinline)) void leave(u64 status) {
  count(5);
  system_call(REPORT, (u64)counts, 0);
  system_call(EXIT, status, 0);
}

__attribute__((noinline)) u64 start(u64 program, u64 seed) {
  count(6);
  u64 child = fork_one();
  if (child == 0) become(program, seed);
  return child;
}

u64 main(u64 seed) {
  count(0);
  if (seed != 0) {
    u64 is_child = 0, sum = split(seed, &is_child);
    if (is_child) leave(sum);
    sum += system_call(WAIT, 0, 0);
    system_call(REPORT, (u64)counts, 0);
    return sum;
  }
  u64 sum = 0;
  for (u64 round = 0; round < ROUNDS; round++) {
    start(POND, round);
    start(MILL, round);
    start(INIT, round % 3 + 1);
    /* Whoever ends first: the sum does not depend on it. */
    for (int i = 0; i < 3; i++) sum += system_call(WAIT, 0, 0);
    sum = blend(sum, round);
  }
  system_call(REPORT, (u64)counts, 0);
  return sum;
}
