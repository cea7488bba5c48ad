// qsort, strtol, setlocale, snprintf and longjmp of a static glibc.
#include <locale.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static jmp_buf out;
static int compare(const void *one, const void *other) { return strcmp(*(char **)one, *(char **)other); }
static void deeper(int n) { if (n == 0) longjmp(out, 3); deeper(n - 1); }
int main(void) {
  char *texts[300];
  setlocale(LC_ALL, "C");
  for (int i = 0; i < 300; i++) {
    char text[32];
    snprintf(text, sizeof text, "%05d-%x", (i * 7919) % 1000, i);
    texts[i] = strdup(text);
  }
  qsort(texts, 300, sizeof *texts, compare);
  for (int i = 0; i < 300; i += 30) printf("%s %ld\n", texts[i], strtol(texts[i], 0, 10));
  int found = setjmp(out);
  if (found == 0) deeper(20);
  printf("%d %s\n", found, getenv("LC_ALL"));
  return 0;
}
