// numpy arrays in and out, and the lock of the interpreter.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/types.hpp"

namespace marginrank {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Array1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided2 = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
using Result1 = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <class T>
using Result2 = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <class T>
nb::capsule owner_of(T* data) {
  return nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
}

template <class T>
Result1<T> new_array(std::size_t n) {
  T* data = new T[n];
  return Result1<T>(data, {n}, owner_of(data));
}

template <class T>
Result2<T> new_matrix(std::size_t rows, std::size_t columns) {
  T* data = new T[rows * columns];
  return Result2<T>(data, {rows, columns}, owner_of(data));
}

template <class T>
Result1<T> to_array(std::vector<T>&& values) {
  auto* held = new std::vector<T>(std::move(values));
  return Result1<T>(held->data(), {held->size()}, nb::capsule(held, [](void* p) noexcept {
                      delete static_cast<std::vector<T>*>(p);
                    }));
}

// Lets other threads of Python run while it lives. If the interpreter ends meanwhile, it unwinds
// whoever asks for the lock again, which ends the process in any function that may not throw, like
// the destructor of nanobind's guard. Such a thread stays here until the process is gone.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) pause();
    }
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace marginrank
