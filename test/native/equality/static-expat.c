#include <expat.h>
#include <stdio.h>
#include <string.h>
static int depth, most, count;
static void start(void *data, const char *name, const char **attributes) { count += name[0]; if (++depth > most) most = depth; }
static void end(void *data, const char *name) { depth--; }
int main(int argc, char **argv) {
  char text[4096];
  FILE *file = fopen(argv[argc - 1], "r");
  XML_Parser parser = XML_ParserCreate(0);
  XML_SetElementHandler(parser, start, end);
  for (size_t size; (size = fread(text, 1, sizeof text, file)) > 0;) XML_Parse(parser, text, (int)size, 0);
  int whole = XML_Parse(parser, text, 0, 1);
  printf("%d %d %d %s\n", count, most, whole, XML_ExpatVersion());
  XML_ParserFree(parser);
  return 0;
}
