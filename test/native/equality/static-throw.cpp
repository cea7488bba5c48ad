// Exceptions of a static libstdc++ through frames, streams and maps.
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
__attribute__((noinline)) static int deeper(int n) {
  std::string text(n % 40, 'x');
  if (n % 7 == 0) throw std::runtime_error("at " + std::to_string(n));
  return n == 1 ? 1 : deeper(n - 1) + int(text.size());
}
int main() {
  std::map<std::string, int> seen;
  for (int i = 1; i < 120; i++) {
    try {
      seen["sum"] += deeper(i);
    } catch (const std::exception &error) {
      seen[error.what()]++;
    }
  }
  std::ostringstream text;
  for (const auto &[name, count] : seen) text << name << '=' << count << '\n';
  std::cout << text.str();
  return int(seen.size()) % 256;
}
