// FNV over a file, through stdio, qsort and printf of a static glibc.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  char line[256], copy[256];
  uint64_t hash = 14695981039346656037u;
  FILE *file = fopen(argv[argc - 1], "r");
  if (!file) return perror(argv[argc - 1]), 1;
  while (fgets(line, sizeof line, file)) {
    memmove(copy, line, strlen(line) + 1);
    for (char *at = copy; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    if (strstr(copy, "w7")) memset(copy, 'x', 8), printf("%.12s %016llx\n", copy, (unsigned long long)hash);
  }
  fprintf(stderr, "%llx\n", (unsigned long long)hash);
  return fclose(file) + 2;
}
