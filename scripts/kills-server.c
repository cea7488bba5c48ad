// A server for `scripts/kills`: a thread a connection, a line of text answered for each request (GET ... and an empty line). Prints its port.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) long leaf(long a) {
  __asm__ volatile("" : "+r"(a));
  return a * 3 + 1;
}

__attribute__((noinline)) long deep(long n) {
  long below = n > 0 ? deep(n - 1) : 0;
  __asm__ volatile("" : "+r"(below));
  return leaf(below) + n;
}

__attribute__((noinline)) void answer(int client, long number) {
  char body[64], text[256];
  int length = snprintf(body, sizeof body, "%ld\n", deep(number % 8));
  length = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, body);
  if (write(client, text, length) < 0) return;
}

static void *serve(void *which) {
  int client = (int)(long)which;
  char text[4096];
  size_t have = 0;
  for (long number = 0;;) {
    ssize_t got = read(client, text + have, sizeof text - have - 1);
    if (got <= 0) break;
    have += got;
    text[have] = 0;
    if (!strstr(text, "\r\n\r\n")) continue;
    have = 0;
    answer(client, number++);
  }
  close(client);
  return NULL;
}

int main(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(server, (struct sockaddr *)&address, size) || listen(server, 64)) return 1;
  getsockname(server, (struct sockaddr *)&address, &size);
  printf("127.0.0.1:%d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    pthread_t thread;
    long client = accept(server, NULL, NULL);
    if (client >= 0) pthread_create(&thread, NULL, serve, (void *)client), pthread_detach(thread);
  }
}
