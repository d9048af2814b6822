// Memory for results that threads fill.
#pragma once

#include <memory>

#include "base/types.hpp"

namespace marginrank {

// Uninitialized memory: the worker threads that fill it are the first to touch it.
template <class T>
class Buffer {
 public:
  explicit Buffer(Index size) : data_(std::make_unique_for_overwrite<T[]>(size)) {}
  T& operator[](Index i) { return data_[i]; }
  const T& operator[](Index i) const { return data_[i]; }
  T* at(Index i) { return data_.get() + i; }
  const T* at(Index i) const { return data_.get() + i; }

 private:
  std::unique_ptr<T[]> data_;
};

}  // namespace marginrank
