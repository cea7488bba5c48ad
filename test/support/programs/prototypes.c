/* Functions whose arguments need the stack, or do not. */
#define F __attribute__((noinline, used))
typedef unsigned long word;
typedef const word *const pointer;
struct small { int a, b; };
struct pair { word a, b; };
struct large { word a, b, c; };
enum choice { ONE, TWO };

F int none(void) { return 1; }
F void scalars(int first, short second, pointer third, enum choice fourth) {}
F word six(word a, word b, word c, word d, word e, word f) { return a + f; }
F word seven(word a, word b, word c, word d, word e, word f, word g) { return a + g; }
F int variadic(const char *format, ...) { return 0; }
F word by_small(struct small s, word x) { return s.a + x; }
F word by_large(struct large l, word x) { return l.a + x; }
F struct pair gives_pair(word a, word b, word c, word d, word e, word f) { return (struct pair){a, f}; }
F struct large gives_large(word a, word b, word c, word d, word e, word f) { return (struct large){a, b, f}; }
int main(void) { return 0; }
