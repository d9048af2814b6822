// The pairs that Python holds, and the state of a point on them.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "bindings/matrix.hpp"
#include "pairs/level_kernel.hpp"
#include "pairs/listed_kernel.hpp"

namespace marginrank {

// The pairs of a data set and the loss on them, together with the Python objects their memory
// belongs to.
class Pairs {
 public:
  using Kernel = std::variant<PairKernel, ListedKernel>;
  using State = std::variant<std::unique_ptr<PairPoint>, std::unique_ptr<ListedPoint>>;

  // All pairs of different levels.
  static Pairs of_levels(Index n_rows, Array1<Index> offsets, std::optional<Array1<Index>> rows,
                         Array1<Level> level, Array1<Level> n_levels, Array1<double> query_weight,
                         std::optional<Array2<double>> preferred,
                         std::optional<Array2<double>> other, std::optional<Array1<double>> margin,
                         Level width, const Array2<double>& pieces,
                         const std::optional<Array2<Level>>& ranks);

  // Listed pairs.
  static Pairs of_list(Index n_rows, Array1<Index> offsets, std::optional<Array1<Index>> rows,
                       nb::object incidence, Array1<double> query_weight,
                       std::optional<Array1<double>> margin, const Array2<double>& pieces);

  const Kernel& kernel() const { return kernel_; }
  const Documents& documents() const {
    return std::visit([](const auto& kernel) -> const Documents& { return kernel.problem(); },
                      kernel_);
  }
  std::size_t n_documents() const { return static_cast<std::size_t>(documents().n_documents()); }

  // Whether both group their documents by the same array, all of it: one may have a part of it.
  bool same_queries(const Pairs& other) const {
    return documents().offsets == other.documents().offsets &&
           documents().n_queries == other.documents().n_queries;
  }

  // Whether both have the same documents in the same queries, so that a sweep may serve both.
  bool same_documents(const Pairs& other) const {
    const Documents &a = documents(), &b = other.documents();
    return n_rows_ == other.n_rows_ && a.n_queries == b.n_queries &&
           same(a.offsets, b.offsets, a.n_queries + 1) && same(a.rows, b.rows, a.n_documents());
  }

  // Solvers create and drop points all the time. One is kept for reuse, because every page of
  // fresh memory costs a page fault.
  State new_point() {
    if (spare_) return *std::exchange(spare_, std::nullopt);
    return std::visit(
        [](const auto& kernel) -> State {
          using Point = typename std::decay_t<decltype(kernel)>::Point;
          return std::make_unique<Point>(kernel.problem());
        },
        kernel_);
  }
  void recycle(State point) { spare_ = std::move(point); }

  // An uninitialized array with one entry per document. An array that Python drops is kept for
  // the same reason.
  Result1<double> new_scores() {
    struct Held {
      std::unique_ptr<double[]> memory;
      std::shared_ptr<std::unique_ptr<double[]>> spare;
    };
    auto held = std::make_unique<Held>(std::move(*spare_scores_), spare_scores_);
    if (!held->memory) held->memory = std::make_unique_for_overwrite<double[]>(n_documents());
    double* const first = held->memory.get();
    nb::capsule owner(held.get(), [](void* p) noexcept {
      const std::unique_ptr<Held> done(static_cast<Held*>(p));
      *done->spare = std::move(done->memory);
    });
    held.release();  // the capsule has it now
    return Result1<double>(first, {n_documents()}, owner);
  }

  void check_matrix(const Matrix& X) const {
    require(X.n_rows() == n_rows_, "the matrix and the pairs must have the same number of rows");
  }

 private:
  template <class K>
  Pairs(Index n_rows, K kernel, std::shared_ptr<const void> owners)
      : n_rows_(n_rows), kernel_(std::move(kernel)), owners_(std::move(owners)) {}

  static bool same(const Index* a, const Index* b, Index count) {
    return a == b || (a && b && std::equal(a, a + count, b));
  }

  Index n_rows_;
  Kernel kernel_;
  std::shared_ptr<const void> owners_;
  std::optional<State> spare_;
  std::shared_ptr<std::unique_ptr<double[]>> spare_scores_ =
      std::make_shared<std::unique_ptr<double[]>>();
};

// The state of a point; keeps its pairs alive and gives its memory back to them.
class Point {
 public:
  explicit Point(nb::object owner)
      : owner_(std::move(owner)), pairs_(nb::cast<Pairs*>(owner_)), state_(pairs_->new_point()) {}
  Point(Point&& from) noexcept
      : owner_(std::move(from.owner_)),
        pairs_(std::exchange(from.pairs_, nullptr)),
        state_(std::move(from.state_)) {}
  ~Point() {
    if (pairs_) pairs_->recycle(std::move(state_));
  }

  Pairs& pairs() const { return *pairs_; }

  // f(kernel, state of this point for that kernel)
  template <class F>
  auto visit(F&& f) const {
    return std::visit(
        [&](const auto& kernel) {
          return f(kernel, *get<typename std::decay_t<decltype(kernel)>::Point>());
        },
        pairs_->kernel());
  }

  // The state, or null if it is of another kind.
  template <class T>
  T* get() const {
    const auto* state = std::get_if<std::unique_ptr<T>>(&state_);
    return state ? state->get() : nullptr;
  }

 private:
  nb::object owner_;
  Pairs* pairs_;
  Pairs::State state_;
};

// f(view of X, kernel, state) for the layout of X and the kind of pairs.
template <class F>
auto visit(const Matrix& X, const Point& point, F&& f) {
  return X.visit([&](const auto& view) {
    return point.visit([&](const auto& kernel, auto& state) { return f(view, kernel, state); });
  });
}

}  // namespace marginrank
