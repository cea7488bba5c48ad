// What a hit costs a client that does nothing else: the packets of rsptrace's stop engine in the same writes, without events, checks or
// a trace. Against this rsptrace is measured (scripts/bench hits).
//
//   bench-floor SOCKET|PORT ADDRESS entry|exit EVENTS WARM [SELF LENGTH [CLOCK-PACKET]]
//   bench-floor SOCKET|PORT sample PERIOD SAMPLES WARM
//
// The second form interrupts every PERIOD microseconds, reads the registers of every hart, and goes on: what a sampling profile must do
// (scripts/bench profile). It prints microseconds a sample, those of the period included.
//
//   a stop        g  clock  m (guessed as rsptrace guesses)     one write
//   guess wrong   m                                             one write
//   on            Z0|z0  M  P P (or G)  vCont;c                 one write
//
// SELF: the register with the pointer whose LENGTH bytes are read at entry and exit, by its place in g. The function's first instruction
// is carried out by register writes: `addi sp, sp, N` (compressed) or `push`. Prints "RESULT wall cpu", microseconds an event.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 18, GUESSES = 4096 };

typedef struct {
  uint64_t pc, first, wanted[2];
} Guess;

static int fd;
static char out[BUFFER], in[BUFFER];
static size_t out_length, in_start, in_end;
static int riscv, singles, acks = 1;

static void fail(const char *what, const char *detail) {
  fprintf(stderr, "bench-floor: %s %.60s\n", what, detail);
  exit(1);
}

/* Packets */

static void put(const char *format, ...) {
  if (acks) out[out_length++] = '+';
  char *data = out + out_length;
  *data++ = '$';
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(data, BUFFER - out_length - 8, format, arguments);
  va_end(arguments);
  unsigned char sum = 0;
  for (int i = 0; i < length; i++) sum += (unsigned char)data[i];
  out_length += 1 + length + sprintf(data + length, "#%02x", sum);
}

static void send_all(void) {
  for (size_t sent = 0; sent < out_length;) {
    ssize_t n = write(fd, out + sent, out_length - sent);
    if (n <= 0) fail("write", "failed");
    sent += n;
  }
  out_length = 0;
}

/* The next answer, decoded in place; valid until the next call. Output of a monitor command is passed over. */
static char *answer(void) {
  for (;;) {
    char *start = memchr(in + in_start, '$', in_end - in_start);
    char *end = start ? memchr(start, '#', in + in_end - start) : NULL;
    if (end && end + 2 < in + in_end) {
      in_start = end + 3 - in;
      *end = 0;
      if (start[1] == 'O' && start[2] != 'K') continue;
      if (!memchr(start, '*', end - start)) return start + 1;
      static char runs[BUFFER];
      char *to = runs;
      for (char *from = start + 1; from < end; from++) {
        if (*from != '*') *to++ = *from;
        else for (int n = *++from - 29; n > 0 && to < runs + BUFFER - 1; n--, to++) *to = to[-1];
      }
      *to = 0;
      return runs;
    }
    if (in_start > 0) {
      memmove(in, in + in_start, in_end - in_start);
      in_end -= in_start;
      in_start = 0;
    }
    ssize_t n = read(fd, in + in_end, BUFFER - in_end);
    if (n <= 0) fail("the stub", "has closed");
    in_end += n;
  }
}

static char *ask(const char *packet) {
  put("%s", packet);
  send_all();
  return answer();
}

static void expect_ok(int count) {
  for (; count > 0; count--) {
    char *text = answer();
    if (strcmp(text, "OK")) fail("instead of OK:", text);
  }
}

/* Numbers: 8 bytes in hex, little-endian */

static unsigned nibble(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

static uint64_t number(const char *hex) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]);
  return value;
}

static const char *digits(uint64_t value) {
  static char text[4][17];
  static int turn;
  char *hex = text[turn++ & 3];
  for (int i = 0; i < 16; i++) hex[i] = "0123456789abcdef"[value >> ((i / 2) * 8 + (i & 1 ? 0 : 4)) & 15];
  return hex;
}

/* The target */

static uint64_t reg(const char *block, int place) { return number(block + 16 * place); }

static int pc_place(void) { return riscv ? 32 : 16; }
static int sp_place(void) { return riscv ? 2 : 7; }

static unsigned code_at(uint64_t address) {
  char packet[40];
  sprintf(packet, "m%lx,2", (unsigned long)address);
  char *text = ask(packet);
  if (strlen(text) != 4) fail("no code at", packet);
  return nibble(text[0]) << 4 | nibble(text[1]) | nibble(text[2]) << 12 | nibble(text[3]) << 8;
}

static int kind_at(uint64_t address) { return !riscv ? 1 : (code_at(address) & 3) == 3 ? 4 : 2; }

/* The return address's kind, read once. */
static int known_kind(uint64_t address) {
  static uint64_t known[64];
  static int kinds[64], count;
  for (int i = 0; i < count; i++)
    if (known[i] == address) return kinds[i];
  if (count == 64) count = 0;
  known[count] = address;
  return kinds[count++] = kind_at(address);
}

/* Register changes: two P, or one G. */
static int put_registers(char *block, int place_a, uint64_t a, int place_b, uint64_t b) {
  if (singles) {
    put("P%x=%s", place_a, digits(a));
    put("P%x=%s", place_b, digits(b));
    return 2;
  }
  memcpy(block + 16 * place_a, digits(a), 16);
  memcpy(block + 16 * place_b, digits(b), 16);
  put("G%s", block);
  return 1;
}

/* The function's first instruction by register and memory writes; how many answers that makes. */
static int put_first(char *block, unsigned code, uint64_t pc) {
  uint64_t sp = reg(block, sp_place());
  if (riscv) {
    int bit[16];
    for (int i = 0; i < 16; i++) bit[i] = code >> i & 1;
    int64_t large = bit[12] * -512 + bit[4] * 256 + bit[3] * 128 + bit[5] * 64 + bit[2] * 32 + bit[6] * 16;
    int64_t small = bit[12] * -32 + (int)(code >> 2 & 31);
    int64_t add = (code & 0xe000) == 0x6000 ? large : small;
    return put_registers(block, 2, sp + add, 32, pc + 2);
  }
  static const int places[] = {0, 2, 3, 1, 7, 6, 4, 5};
  put("M%lx,8:%s", (unsigned long)sp - 8, digits(reg(block, places[code & 7])));
  return 1 + put_registers(block, 7, sp - 8, 16, pc + 1);
}

static int can_put(unsigned code) {
  return riscv ? (code & 0xef83) == 0x6101 || (code & 0xef83) == 0x0101 : (code & 0xf8) == 0x50;
}

static void open_stub(const char *address) {
  for (int tries = 0; tries < 100; tries++, usleep(50000)) {
    if (address[0] == '/') {
      struct sockaddr_un to = {.sun_family = AF_UNIX};
      strncpy(to.sun_path, address, sizeof to.sun_path - 1);
      fd = socket(AF_UNIX, SOCK_STREAM, 0);
      if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return;
    } else {
      struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(address)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
      int on = 1;
      fd = socket(AF_INET, SOCK_STREAM, 0);
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return;
    }
    close(fd);
  }
  fail("nothing listens at", address);
}

static double wall_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static double cpu_us(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

static Guess guesses[GUESSES];

static Guess *guess_after(uint64_t pc, uint64_t first) {
  Guess *guess = &guesses[(pc * 31 + first * 0x9e3779b97f4a7c15u) >> 52];
  if (guess->pc != pc || guess->first != first) *guess = (Guess){pc, first, {0, 0}};
  return guess;
}

/* Samples */

static void sample(unsigned period, int samples, int warm) {
  static char threads[64][40];
  static char list[BUFFER];
  int harts = 0;
  strcpy(list, ask("qfThreadInfo"));
  if (list[0] != 'm') fail("instead of threads:", list);
  for (char *one = strtok(list + 1, ","); one && harts < 64; one = strtok(NULL, ",")) sprintf(threads[harts++], "Hg%.30s", one);
  double wall = 0, cpu = 0;
  for (int n = 1; n <= warm + samples; n++) {
    put("vCont;c");
    send_all();
    usleep(period);
    if (write(fd, "\003", 1) != 1) fail("write", "failed");
    char *stop = answer();
    if (stop[0] != 'T') fail("instead of a stop:", stop);
    for (int hart = 0; hart < harts; hart++) {
      put("%s", threads[hart]);
      put("g");
    }
    send_all();
    for (int hart = 0; hart < harts; hart++) {
      answer();
      answer();
    }
    if (n == warm) {
      wall = wall_us();
      cpu = cpu_us();
    }
  }
  printf("RESULT %.3f %.3f\n", (wall_us() - wall) / samples, (cpu_us() - cpu) / samples);
}

int main(int count, char **arguments) {
  if (count == 6 && !strcmp(arguments[2], "sample")) {
    open_stub(arguments[1]);
    ask("qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+;xmlRegisters=i386");
    acks = strcmp(ask("QStartNoAckMode"), "OK") != 0;
    ask("?");
    ask("vCont?");
    sample(atoi(arguments[3]), atoi(arguments[4]), atoi(arguments[5]));
    return 0;
  }
  if (count < 6) fail("usage:", "see the head of bench-floor.c");
  uint64_t entry = strtoull(arguments[2], NULL, 16);
  int exits = !strcmp(arguments[3], "exit");
  int events = atoi(arguments[4]), warm = atoi(arguments[5]);
  int self_place = count > 7 ? atoi(arguments[6]) : -1, length = count > 7 ? atoi(arguments[7]) : 0;
  const char *clock_packet = count > 8 ? arguments[8] : NULL;

  open_stub(arguments[1]);
  ask("qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+;xmlRegisters=i386");
  acks = strcmp(ask("QStartNoAckMode"), "OK") != 0;
  ask("?");
  riscv = strstr(ask("qXfer:features:read:target.xml:0,3fb"), "riscv") != NULL;
  char probe[8];
  sprintf(probe, "p%x", pc_place());
  singles = strlen(ask(probe)) == 16;
  unsigned first_code = code_at(entry);
  if (!can_put(first_code)) fail("the first instruction is none that is known here:", arguments[2]);
  char breakpoint[48];
  sprintf(breakpoint, "Z0,%lx,%d", (unsigned long)entry, kind_at(entry));
  if (strcmp(ask(breakpoint), "OK")) fail("refused:", breakpoint);

  static char block[BUFFER];
  uint64_t last_pc = 0, last_first = 0, self = 0, awaited = 0, stack = 0;
  double wall = 0, cpu = 0;
  char *stop = ask("vCont;c");
  for (int event = 1;; event++) {
    if (stop[0] != 'T') fail("instead of a stop:", stop);
    // Registers, clock and what was wanted after a stop like the one before.
    Guess *guess = guess_after(last_pc, last_first);
    uint64_t guessed[2] = {guess->wanted[0], guess->wanted[1]};
    put("g");
    if (clock_packet) put("%s", clock_packet);
    if (guessed[0]) put("m%lx,%x", (unsigned long)guessed[0], length);
    if (guessed[1]) put("m%lx,8", (unsigned long)guessed[1]);
    send_all();
    strcpy(block, answer());
    if (clock_packet) answer();
    if (guessed[0]) answer();
    uint64_t returns = guessed[1] ? number(answer()) : 0;

    uint64_t pc = reg(block, pc_place()), sp = reg(block, sp_place());
    int enters = pc == entry;
    if (!enters && (pc != awaited || sp != stack)) fail("a stop that nobody asked for:", digits(pc));
    if (enters && self_place >= 0) self = reg(block, self_place);
    uint64_t wanted[2] = {length > 0 ? self : 0, exits && enters && !riscv ? sp : 0};
    int missing[2] = {wanted[0] && wanted[0] != guessed[0], wanted[1] && wanted[1] != guessed[1]};
    if (missing[0]) put("m%lx,%x", (unsigned long)wanted[0], length);
    if (missing[1]) put("m%lx,8", (unsigned long)wanted[1]);
    if (missing[0] || missing[1]) send_all();
    if (missing[0]) answer();
    if (missing[1]) returns = number(answer());
    guess->wanted[0] = wanted[0];
    guess->wanted[1] = wanted[1];
    last_pc = pc;
    last_first = wanted[0] ? wanted[0] : wanted[1];

    if (event == warm) {
      wall = wall_us();
      cpu = cpu_us();
    }
    if (event == warm + events) break;

    int oks = 0;
    if (enters) {
      if (exits) {
        awaited = riscv ? reg(block, 1) : returns;
        stack = riscv ? sp : sp + 8;
        put("Z0,%lx,%d", (unsigned long)awaited, known_kind(awaited));
        oks++;
      }
      oks += put_first(block, first_code, pc);
    } else {
      put("z0,%lx,%d", (unsigned long)awaited, known_kind(awaited));
      oks++;
    }
    put("vCont;c");
    send_all();
    expect_ok(oks);
    stop = answer();
  }
  printf("RESULT %.3f %.3f\n", (wall_us() - wall) / events, (cpu_us() - cpu) / events);
  return 0;
}
