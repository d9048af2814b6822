// What the files that know Python share: numpy arrays, and the view of X.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "matrix.hpp"

namespace marginrank {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Array1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows2 = nb::ndarray<const T, nb::ndim<2>, nb::any_contig, nb::device::cpu>;
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

inline void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

// X, whatever its layout, together with the Python objects its memory belongs to.
class Matrix {
 public:
  using View =
      std::variant<Dense<float>, Dense<double>, Csr<float, std::int32_t>, Csr<double, std::int32_t>,
                   Csr<float, std::int64_t>, Csr<double, std::int64_t>>;

  template <class T>
  static Matrix dense(const Strided2<T>& x) {
    require(x.shape(1) <= 1 || x.stride(1) == 1, "the rows of a dense matrix must be contiguous");
    return Matrix(Dense<T>(x.data(), static_cast<Index>(x.shape(0)), static_cast<Index>(x.shape(1)),
                           x.stride(0)),
                  nb::cast(x), nb::none(), nb::none());
  }

  template <class T, class I>
  static Matrix csr(const Array1<T>& data, const Array1<I>& indices, const Array1<I>& indptr,
                    Index n_columns) {
    require(indptr.size() >= 1 && indptr(0) == 0, "indptr must begin with 0");
    const auto n_rows = static_cast<Index>(indptr.size()) - 1;
    const auto nnz = static_cast<Index>(indptr(indptr.size() - 1));
    require(static_cast<Index>(data.size()) >= nnz && static_cast<Index>(indices.size()) >= nnz,
            "indptr points beyond the stored entries");
    {
      const GilReleased released;
      require(is_canonical(indices.data(), indptr.data(), n_rows, n_columns),
              "column indices must lie inside the matrix and increase strictly in each row");
    }
    return Matrix(Csr<T, I>(data.data(), indices.data(), indptr.data(), n_rows, n_columns),
                  nb::cast(data), nb::cast(indices), nb::cast(indptr));
  }

  template <class F>
  auto visit(F&& f) const {
    return std::visit(std::forward<F>(f), view_);
  }

  Index n_rows() const {
    return visit([](const auto& X) { return X.n_rows(); });
  }
  Index n_entries() const {
    return visit([](const auto& X) { return X.n_entries(); });
  }
  Index n_columns() const {
    return visit([](const auto& X) { return X.n_columns(); });
  }

  // The largest |x| of each column, once they have been asked for.
  mutable std::optional<std::vector<double>> magnitudes;

 private:
  Matrix(View view, nb::object a, nb::object b, nb::object c)
      : view_(std::move(view)), owners_{std::move(a), std::move(b), std::move(c)} {}

  template <class I>
  static bool is_canonical(const I* indices, const I* indptr, Index n_rows, Index n_columns) {
    for (Index i = 0; i < n_rows; ++i) {
      if (indptr[i] > indptr[i + 1]) return false;
    }
    bool fine = true;
    for (Index i = 0; i < n_rows; ++i) {
      Index previous = -1;
      for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
        fine = fine && indices[k] > previous && indices[k] < n_columns;
        previous = indices[k];
      }
    }
    return fine;
  }

  View view_;
  nb::object owners_[3];
};

void bind_letor(nb::module_& m);
void bind_sgd(nb::module_& m);

}  // namespace marginrank
