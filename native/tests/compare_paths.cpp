// Compares the kernels of every path that runs here, bit for bit, with the portable ones as this program has them.
//
// compare_paths: exits with 1 where a path differs. compare_paths --digest PATH: the digest of what that path computes,
// to compare between processors; "auto" is the fastest that runs.
#include <cstdio>

#include "isa/select.hpp"
#include "tests/recorder.hpp"

namespace paceline {
namespace {

Recorder run(const Kernels& kernels) {
  Recorder out;
  run_products(kernels, out);
  run_elementwise(kernels, out);
  run_attention(kernels, out);
  run_sampling(kernels, out);
  return out;
}

// Prints what differs, at most ten cases of it. Returns how many do.
int compare(const Recorder& expected, const Recorder& found) {
  int num_different = 0;
  for (std::size_t i = 0; i < expected.cases().size(); ++i) {
    if (expected.cases()[i].digest == found.cases()[i].digest) continue;
    if (++num_different <= 10) std::printf("  differs: %s\n", expected.cases()[i].name.c_str());
  }
  return num_different;
}

std::vector<const Kernels*> paths_to_compare() {
  std::vector<const Kernels*> paths = runnable_kernels();
#if defined(PACELINE_SIMDE)
  paths.insert(paths.begin(), kAvx512Kernels);  // emulated: it runs anywhere
#endif
  return paths;
}

int compare_all() {
  int num_different = 0;
  const Recorder expected = run(kPortableKernels);
  for (const Kernels* kernels : paths_to_compare()) {
    if (kernels == &kPortableKernels) continue;
    const int count = compare(expected, run(*kernels));
    std::printf("%s: %d of %zu cases differ from portable\n", kernels->name, count, expected.cases().size());
    num_different += count;
  }
  return num_different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  using namespace paceline;
  if (argc == 1) return compare_all();
  if (argc != 3 || std::string(argv[1]) != "--digest") {
    std::fprintf(stderr, "usage: compare_paths [--digest PATH]\n");
    return 2;
  }
  const Kernels& kernels = find_kernels(argv[2]);
  std::printf("%s %016llx\n", kernels.name, static_cast<unsigned long long>(run(kernels).digest()));
  return 0;
}
