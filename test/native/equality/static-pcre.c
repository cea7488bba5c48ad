#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  char line[256];
  int error, found = 0;
  PCRE2_SIZE at;
  pcre2_code *code = pcre2_compile((PCRE2_SPTR) "w(\\d+)(?=\\.)|(?<!x)line (1\\d)", PCRE2_ZERO_TERMINATED, 0, &error, &at, 0);
  int jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, 0);
  FILE *file = fopen(argv[argc - 1], "r");
  while (fgets(line, sizeof line, file)) found += pcre2_match(code, (PCRE2_SPTR)line, strlen(line), 0, 0, match, 0);
  printf("%d %d\n", found, jit);
  return 0;
}
