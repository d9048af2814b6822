// The inner loops. rows.cpp, hats.cpp and counting.cpp are compiled for several instruction sets
// and dispatch.cpp picks the best that the machine has, so one binary runs anywhere and still
// vectorizes.
#pragma once

#include "simd/counting.hpp"
#include "simd/hats.hpp"
#include "simd/rows.hpp"

namespace marginrank {

struct Simd {
  DenseKernels dense;
  CountingKernels counting;
  HatKernels hats;

  template <class T>
  const RowKernels<T>& rows() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return dense.float32;
    } else {
      return dense.float64;
    }
  }
};

// The kernels for this machine.
const Simd& simd();

}  // namespace marginrank
