// Picks the kernels for the machine at run time.
#include "simd/dispatch.hpp"

#include <atomic>

#include "simd/simd.hpp"

#ifdef MARGINRANK_X86_64
#include <cpuid.h>
#endif

namespace marginrank {

namespace baseline {
extern const DenseKernels dense;
extern const CountingKernels counting;
extern const HatKernels hats;
}  // namespace baseline
#ifdef MARGINRANK_X86_64
namespace x86_64_v3 {
extern const DenseKernels dense;
extern const CountingKernels counting;
extern const HatKernels hats;
}  // namespace x86_64_v3
namespace x86_64_v4 {
extern const DenseKernels dense;
extern const CountingKernels counting;
extern const HatKernels hats;
}  // namespace x86_64_v4
#endif

namespace {

struct Variant {
  const char* name;
  bool runs_here;
  Simd kernels;
};

#ifdef MARGINRANK_X86_64
// Everything the compiler may use for a level of the x86-64 psABI. Not every compiler's
// __builtin_cpu_supports knows all of it, but all of them check that the system saves the wide
// registers.
bool is_x86_64_v3() {
  constexpr unsigned kFirst = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT |
                              bit_CMPXCHG16B | bit_AVX | bit_F16C | bit_FMA | bit_MOVBE |
                              bit_OSXSAVE;
  constexpr unsigned kSeventh = bit_AVX2 | bit_BMI | bit_BMI2;
  constexpr unsigned kExtended = bit_LAHF_LM | bit_LZCNT;
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & kFirst) == kFirst &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & kSeventh) == kSeventh &&
         __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & kExtended) == kExtended &&
         __builtin_cpu_supports("avx2");
}

bool is_x86_64_v4() {
  return is_x86_64_v3() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

const std::vector<Variant> variants{
    {"baseline", true, {baseline::dense, baseline::counting, baseline::hats}},
#ifdef MARGINRANK_X86_64
    {"x86-64-v3", is_x86_64_v3(), {x86_64_v3::dense, x86_64_v3::counting, x86_64_v3::hats}},
    {"x86-64-v4", is_x86_64_v4(), {x86_64_v4::dense, x86_64_v4::counting, x86_64_v4::hats}},
#endif
};

const Simd* best() {
  const Simd* found = nullptr;
  for (const Variant& variant : variants) {
    if (variant.runs_here) found = &variant.kernels;
  }
  return found;
}

std::atomic<const Simd*> chosen{best()};

}  // namespace

const Simd& simd() { return *chosen.load(std::memory_order_relaxed); }

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Variant& variant : variants) {
    if (variant.runs_here) names.emplace_back(variant.name);
  }
  return names;
}

std::vector<std::string> compiled_instruction_sets() {
  std::vector<std::string> names;
  for (const Variant& variant : variants) names.emplace_back(variant.name);
  return names;
}

bool use_instruction_set(const std::string& name) {
  for (const Variant& variant : variants) {
    if (variant.runs_here && name == variant.name) {
      chosen.store(&variant.kernels, std::memory_order_relaxed);
      return true;
    }
  }
  return false;
}

}  // namespace marginrank
