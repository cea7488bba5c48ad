// A program for tests whose section .late is not loaded when it starts (the test takes that segment out of the program headers): it brings the code
// itself, the way its first argument says, calls it, counts the calls, and says what it saw in that memory before.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BASE ((unsigned char *)0x30000000)
#define LATE __attribute__((noinline, section(".late")))

static unsigned long earlys, calls[6];
__attribute__((noinline)) unsigned long early(unsigned long x) { earlys++; return x * 3 + 1; }
LATE unsigned long late0(unsigned long x) { calls[0]++; return x * 5 + 1; }
LATE unsigned long late1(unsigned long x) { calls[1]++; return x * 7 + 1; }
LATE unsigned long late2(unsigned long x) { calls[2]++; return x * 11 + 1; }
LATE unsigned long late3(unsigned long x) { calls[3]++; return x * 13 + 1; }
LATE unsigned long late4(unsigned long x) { calls[4]++; return x * 17 + 1; }
LATE unsigned long late5(unsigned long x) { calls[5]++; return x * 19 + 1; }
static unsigned long (*volatile const late[6])(unsigned long) = {late0, late1, late2, late3, late4, late5};

static int self;
static unsigned long offset, size;

/// Where in the file the code is.
static void find(void) {
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  self = open("/proc/self/exe", O_RDONLY);
  if (pread(self, &header, sizeof header, 0) != sizeof header) exit(90);
  for (int i = 0; i < header.e_phnum; i++) {
    if (pread(self, &segment, sizeof segment, header.e_phoff + i * sizeof segment) != sizeof segment) exit(91);
    if (segment.p_vaddr == (unsigned long)BASE) offset = segment.p_offset, size = (segment.p_filesz + 4095) & ~4095ul;
  }
  if (size == 0) exit(92);
}

static void map(int protection, int flags, int file, unsigned long from) {
  if (mmap(BASE, size, protection, MAP_PRIVATE | flags, file, from) != BASE) exit(93);
}

static void all(const char *what, unsigned char byte) {
  unsigned long others = 0;
  for (unsigned long i = 0; i < size; i++) others += BASE[i] != byte;
  printf("%s: %lu bytes changed\n", what, others);
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "";
  unsigned long sum = early(1);
  find();
  if (strcmp(mode, "file") == 0) {
    map(PROT_READ | PROT_EXEC, MAP_FIXED, self, offset);
  } else if (strcmp(mode, "pages") == 0) {
    // Zeros, then something else, then the code: each mapped and made executable as if it were it.
    map(PROT_READ | PROT_WRITE, MAP_FIXED | MAP_ANONYMOUS, -1, 0);
    mprotect(BASE, size, PROT_READ | PROT_EXEC);
    sum += early(2);
    all("zeros", 0);
    mprotect(BASE, size, PROT_READ | PROT_WRITE);
    memset(BASE, 0x5a, size);
    mprotect(BASE, size, PROT_READ | PROT_EXEC);
    sum += early(3);
    all("others", 0x5a);
    mprotect(BASE, size, PROT_READ | PROT_WRITE);
    if (pread(self, BASE, size, offset) <= 0) exit(94);
    mprotect(BASE, size, PROT_READ | PROT_EXEC);
  } else if (strcmp(mode, "copy") == 0) {
    // No system call tells of this.
    unsigned char *copy = malloc(size);
    if (pread(self, copy, size, offset) <= 0) exit(95);
    map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_FIXED | MAP_ANONYMOUS, -1, 0);
    // Another function, where late0 is going to be: mov %rdi,%rax; ret
    memcpy((void *)late0, "\x48\x89\xf8\xc3", 4);
    sum += late[0](2);
    memset((void *)late0, 0, 4);
    all("others", 0);
    memcpy(BASE, copy, size);
  } else if (strcmp(mode, "wait") == 0) {
    // When the file exists that is its second argument; and waits until somebody has noticed.
    puts("waiting");
    fflush(stdout);
    while (access(arguments[2], F_OK) != 0) usleep(1000);
    map(PROT_READ | PROT_EXEC, MAP_FIXED, self, offset);
    for (int i = 0; i < 6; i++)
      while (*(volatile unsigned char *)late[i] != 0xcc) usleep(1000);
  } else {
    printf("sum %lx\n", sum);
    return 0;
  }
  for (int round = 0; round < 5; round++)
    for (int i = 0; i < 6; i++) sum += late[i](sum);
  printf("sum %lx\ncalls early=%lu", sum, earlys);
  for (int i = 0; i < 6; i++) printf(" late%d=%lu", i, calls[i]);
  puts("");
}
