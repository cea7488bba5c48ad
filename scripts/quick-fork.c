// Starting a program from a large process takes long: fork(2) copies its page tables, 20 ms for a test's 400 MB. libuv
// calls execvp(3) right behind it, so in a test host `fork` is vfork(2), which takes 1 ms: the child has the parent's
// memory until it is another program, and the parent's thread waits for that. What libuv's child writes there is
// `environ` and its stack: both are put back. Loaded by LD_PRELOAD (scripts/run-tests.mjs).
#include <string.h>

extern char **environ;

/** More than the frames of `uv_spawn` and of what it calls. */
enum { STACK = 4096 };

static __thread struct {
  void *back;
  void *stack;
  char **environment;
  char bytes[STACK];
} kept;

__attribute__((used, visibility("hidden"))) void keep(void *back, void *stack) {
  kept.back = back;
  kept.stack = stack;
  kept.environment = environ;
  memcpy(kept.bytes, stack, STACK);
}

/** Where to return to. The stack does not have it any more: the child has returned there first. */
__attribute__((used, visibility("hidden"))) void *put_back(long child) {
  if (child != 0) {
    environ = kept.environment;
    memcpy(kept.stack, kept.bytes, STACK);
  }
  return kept.back;
}

__asm__(".text\n"
        ".globl fork\n"
        ".type fork, @function\n"
        "fork:\n"
        "  pop %rdi\n"
        "  mov %rsp, %rsi\n"
        "  call keep\n"
        "  call vfork@plt\n"
        "  push %rax\n"
        "  push %rax\n"
        "  mov %rax, %rdi\n"
        "  call put_back\n"
        "  mov %rax, %rcx\n"
        "  pop %rax\n"
        "  pop %rdx\n"
        "  jmp *%rcx\n");
