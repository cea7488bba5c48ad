// A program for tests: exceptions that pass functions with and without cleanups, are caught and thrown again, on four threads. It counts.
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<unsigned long> leafs, middles, outers, thrown, caught, cleaned;

struct Guard {
  ~Guard() { cleaned++; }
};

__attribute__((noinline)) int leaf(int x) {
  leafs++;
  if (x % 3 == 0) {
    thrown++;
    throw std::runtime_error("three " + std::to_string(x));
  }
  return x * 2;
}

// Its last argument is on the stack. With a cold part it would leave by a jump to that.
__attribute__((noinline, optimize("no-reorder-blocks-and-partition"))) int middle(int a, int b, int, int, int, int, int last) {
  middles++;
  Guard guard;
  try {
    return leaf(a) + b + last;
  } catch (const std::runtime_error &error) {
    if (a % 2 == 0) throw;
    return b;
  }
}

__attribute__((noinline)) int outer(int a, int b, int c) {
  outers++;
  try {
    return middle(a, b, 0, 0, 0, 0, c) + c;
  } catch (const std::exception &error) {
    caught++;
    return c + (int)std::string(error.what()).size();
  }
}

int main() {
  std::atomic<long> sum{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; thread++)
    threads.emplace_back([&sum, thread] {
      for (int i = 0; i < 150; i++) sum += outer(i + thread, i * 2, i * 3);
    });
  for (auto &thread : threads) thread.join();
  std::printf("sum %ld thrown %lu caught %lu cleaned %lu\n", sum.load(), thrown.load(), caught.load(), cleaned.load());
  std::printf("calls leaf=%lu middle=%lu outer=%lu\n", leafs.load(), middles.load(), outers.load());
}
