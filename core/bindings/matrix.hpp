// The view of X that Python holds.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/checks.hpp"
#include "matrix/coded.hpp"

namespace marginrank {

template <class T>
Dense<T> dense_view(const Strided2<T>& x) {
  require(x.shape(0) == 0 || x.shape(1) <= 1 || x.stride(1) == 1,
          "the rows of a dense matrix must be contiguous");
  return {x.data(), static_cast<Index>(x.shape(0)), static_cast<Index>(x.shape(1)), x.stride(0)};
}

constexpr Index kMostCategories = 0xFFFF;  // of codes with two bytes

// X, whatever its layout, together with the Python objects its memory belongs to.
class Matrix {
 public:
  using View =
      std::variant<Dense<float>, Dense<double>, Csr<float, std::int32_t>, Csr<double, std::int32_t>,
                   Csr<float, std::int64_t>, Csr<double, std::int64_t>, Hats, Coded>;

  template <class T>
  static Matrix dense(const Strided2<T>& x) {
    return Matrix(dense_view(x), nb::cast(x), nb::none(), nb::none());
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

  static Matrix hats(const Array2<std::uint8_t>& codes, const Array2<std::uint16_t>& steps,
                     const Array1<Index>& starts) {
    const auto n_rows = static_cast<Index>(codes.shape(0));
    const auto n_features = static_cast<Index>(codes.shape(1));
    require(codes.shape(0) == steps.shape(0) && codes.shape(1) == steps.shape(1),
            "codes and steps must have the same shape");
    check_starts(starts, n_features);
    {
      const GilReleased released;
      require(is_inside(codes.data(), starts.data(), n_rows, n_features),
              "codes must have a column to their right");
    }
    return Matrix(Hats(codes.data(), steps.data(), starts.data(), n_rows, n_features),
                  nb::cast(codes), nb::cast(steps), nb::cast(starts));
  }

  template <class F>
  auto visit(F&& f) const {
    return std::visit(std::forward<F>(f), view_);
  }

  // `inner` with a categorical feature of `width` categories behind its columns.
  static Matrix coded(const Matrix& inner, const Array1<std::uint16_t>& codes, Index width) {
    require(static_cast<Index>(codes.size()) == inner.n_rows(),
            "codes must have one entry per row");
    require(0 <= width && width < kMostCategories, "there must be fewer than 65,535 categories");
    Uncoded view = inner.visit([](const auto& X) -> Uncoded {
      if constexpr (std::is_same_v<std::decay_t<decltype(X)>, Coded>) {
        throw nb::value_error("the matrix has a categorical feature already");
      } else {
        return X;
      }
    });
    return Matrix(Coded(std::move(view), codes.data(), width), nb::cast(inner), nb::cast(codes),
                  nb::none());
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

  // The largest |x| of each column, computed on first use.
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

  static bool is_inside(const std::uint8_t* codes, const Index* starts, Index n_rows,
                        Index n_features) {
    bool fine = true;
    for (Index i = 0; i < n_rows; ++i) {
      for (Index k = 0; k < n_features; ++k) {
        fine = fine && starts[k] + codes[i * n_features + k] + 1 < starts[k + 1];
      }
    }
    return fine;
  }

  View view_;
  nb::object owners_[3];
};

}  // namespace marginrank
