// Picks the kernels for the machine at run time.
#include "dispatch.hpp"

#include <atomic>

#include "simd.hpp"

#ifdef MARGINRANK_X86_64
#include <cpuid.h>
#endif

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

struct Variant {
  const char* name;
  const Simd* kernels;
};

#ifdef MARGINRANK_X86_64
// Everything the compiler may use for a level of the x86-64 psABI. Not every compiler's
// __builtin_cpu_supports knows all of it, but they all ask the system whether it saves the wide
// registers.
constexpr unsigned kV3Basic = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT |
                              bit_CMPXCHG16B | bit_AVX | bit_F16C | bit_FMA | bit_MOVBE |
                              bit_OSXSAVE;
constexpr unsigned kV3Further = bit_LAHF_LM | bit_LZCNT;
constexpr unsigned kV3Wide = bit_AVX2 | bit_BMI | bit_BMI2;
constexpr unsigned kV4Wide =
    static_cast<unsigned>(bit_AVX512F) | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;

bool has_all(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

// 3 or 4, or 0 for anything below.
int x86_64_level() {
  unsigned a, b, basic, d, further, wide;
  if (!__get_cpuid(1, &a, &b, &basic, &d) || !has_all(basic, kV3Basic)) return 0;
  if (!__get_cpuid(0x80000001, &a, &b, &further, &d) || !has_all(further, kV3Further)) return 0;
  if (!__get_cpuid_count(7, 0, &a, &wide, &b, &d) || !has_all(wide, kV3Wide)) return 0;
  if (!__builtin_cpu_supports("avx2")) return 0;
  return has_all(wide, kV4Wide) && __builtin_cpu_supports("avx512f") ? 4 : 3;
}
#endif

std::vector<Variant> find_variants() {
  std::vector<Variant> found{{"baseline", &baseline::kernels}};
#ifdef MARGINRANK_X86_64
  const int level = x86_64_level();
  if (level >= 3) found.push_back({"x86-64-v3", &x86_64_v3::kernels});
  if (level >= 4) found.push_back({"x86-64-v4", &x86_64_v4::kernels});
#endif
  return found;
}

const std::vector<Variant> variants = find_variants();
std::atomic<const Simd*> chosen{variants.back().kernels};

}  // namespace

const Simd& simd() { return *chosen.load(std::memory_order_relaxed); }

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Variant& variant : variants) names.emplace_back(variant.name);
  return names;
}

bool use_instruction_set(const std::string& name) {
  for (const Variant& variant : variants) {
    if (name == variant.name) {
      chosen.store(variant.kernels, std::memory_order_relaxed);
      return true;
    }
  }
  return false;
}

}  // namespace marginrank
