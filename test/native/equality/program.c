#include <stdio.h>
static int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
int main(void) {
  int sum = 0;
  for (int i = 1; i < 200; i++)
    for (int j = 1; j < 200; j++) sum += gcd(i, j);
  printf("%d\n", sum);
  return 0;
}
