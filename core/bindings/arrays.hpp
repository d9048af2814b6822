// numpy arrays in and out, and the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>

#include <memory>
#include <span>
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

// A Python object that deletes `held` when the last array of its memory is gone.
template <class T>
nb::capsule owner_of(std::unique_ptr<T> held) {
  using Pointer = typename std::unique_ptr<T>::pointer;
  nb::capsule owner(held.get(), [](void* p) noexcept {
    const std::unique_ptr<T> deleted(static_cast<Pointer>(p));
  });
  held.release();  // the capsule has it now
  return owner;
}

// Unset: the threads that fill the memory are the first to touch it.
template <class T>
Result1<T> new_array(std::size_t n) {
  auto data = std::make_unique_for_overwrite<T[]>(n);
  T* const first = data.get();
  return Result1<T>(first, {n}, owner_of(std::move(data)));
}

template <class T>
Result2<T> new_matrix(std::size_t rows, std::size_t columns) {
  auto data = std::make_unique_for_overwrite<T[]>(rows * columns);
  T* const first = data.get();
  return Result2<T>(first, {rows, columns}, owner_of(std::move(data)));
}

template <class T>
Result1<T> to_array(std::vector<T>&& values) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* const first = held->data();
  const std::size_t size = held->size();
  return Result1<T>(first, {size}, owner_of(std::move(held)));
}

template <class Array>
auto span_of(const Array& array) {
  return std::span(array.data(), array.size());
}

// Releases the GIL during its lifetime. If the interpreter shuts down meanwhile, it unwinds any
// thread that asks for the GIL again, which terminates the process inside a noexcept function such
// as the destructor of nanobind's guard. Such a thread waits here until the process ends.
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
