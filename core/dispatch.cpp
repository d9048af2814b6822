// Picks the kernels for the machine at run time.
#include "simd.hpp"

namespace marginrank {

namespace baseline {
extern const Simd kernels;
}
#ifdef MARGINRANK_X86_64
namespace x86_64_v3 {
extern const Simd kernels;
}
namespace x86_64_v4 {
extern const Simd kernels;
}
#endif

namespace {

const Simd& choose() {
#ifdef MARGINRANK_X86_64
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return x86_64_v4::kernels;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return x86_64_v3::kernels;
  }
#endif
  return baseline::kernels;
}

}  // namespace

const Simd& simd() {
  static const Simd& chosen = choose();
  return chosen;
}

}  // namespace marginrank
