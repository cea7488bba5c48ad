#include <gmp.h>
int main(void) {
  mpz_t a, b, c;
  mpz_inits(a, b, c, (mpz_ptr)0);
  mpz_fac_ui(a, 500);
  mpz_ui_pow_ui(b, 7, 600);
  mpz_gcd(c, a, b);
  gmp_printf("%Zd\n%Zx\n", c, a);
  mpz_powm(c, a, b, c);
  mpz_nextprime(c, b);
  gmp_printf("%Zd %d\n", c, mpz_probab_prime_p(c, 20));
  return 0;
}
