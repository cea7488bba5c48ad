#include <bzlib.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>
static char in[1 << 16], out[1 << 17], back[1 << 16];
int main(int argc, char **argv) {
  FILE *file = fopen(argv[argc - 1], "r");
  unsigned size = fread(in, 1, sizeof in, file), bz = sizeof out;
  uLongf z = sizeof out;
  size_t zstd = ZSTD_compress(out, sizeof out, in, size, 9);
  size_t whole = ZSTD_decompress(back, sizeof back, out, zstd);
  printf("%u %zu %zu %08lx\n", size, zstd, whole, crc32(0, (Bytef *)back, whole));
  compress2((Bytef *)out, &z, (Bytef *)in, size, 9);
  BZ2_bzBuffToBuffCompress(out, &bz, in, size, 9, 0, 0);
  printf("%lu %u %08lx\n", z, bz, adler32(1, (Bytef *)out, bz));
  return 0;
}
