// Small programs with real debug info: compiled here by gcc, in several DWARF dialects, so that a test can read one thousands of
// times, and knows its source.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Line numbers count from the line of `typedef`. */
export const SOURCE = `typedef unsigned long word;
enum colour { RED, GREEN = 5, BLUE };
union either { int whole; char parts[4]; };
struct node { struct node *next; union either value; enum colour colour; unsigned flag : 3; word sizes[2][3]; };
static struct node table[4];
volatile int sink;
const char banner[] = "hello";
static inline __attribute__((always_inline)) int innermost(int x) {
  sink = x;
  return x * 3;
}
static inline __attribute__((always_inline)) int middle(int x) {
  int y = innermost(x + 1);
  sink = y;
  return y;
}
__attribute__((noipa)) int outer(struct node *n, int x) {
  static int calls;
  calls++;
  n->value.whole = middle(x);
  if (x > 3) {
    int deep = middle(x - 1);
    sink = deep;
  }
  return n->value.whole + calls;
}
__attribute__((noipa)) static word scale(word w, double f) {
  return (word)(w * f) + sizeof(struct node);
}
int alias_of_outer(struct node *n, int x) __attribute__((alias("outer")));
void _start(void) {
  sink = outer(&table[1], (int)scale(3, 1.5));
  for (;;) sink++;
}
`;

/** Makes a folder that is removed when the process ends. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-small-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Compiles {@link SOURCE}; returns the ELF's path. */
export function compile(folder: string, name: string, flags: readonly string[]): string {
  const source = join(folder, 'small.c');
  const output = join(folder, name);
  writeFileSync(source, SOURCE);
  execFileSync(
    'gcc',
    [...'-O2 -g -nostdlib -static -ffreestanding -fno-pie -no-pie'.split(' '), ...flags, '-o', output, source],
    { cwd: folder, stdio: 'pipe' },
  );
  return output;
}

export const bytesOf = (path: string): Uint8Array => new Uint8Array(readFileSync(path));
