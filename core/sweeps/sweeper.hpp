// Sweeps over X: a query's rows are read once for X v, the pair statistics and X' z.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "matrix/parts.hpp"
#include "sweeps/blocks.hpp"
#include "sweeps/queries.hpp"

namespace marginrank {

constexpr Index kManyColumns = Index{1} << 16;  // more columns than this: no partial sums by block

// The vectors of a sweep that X is multiplied with or that come out of it.
struct SweepVectors {
  std::span<const double> v;  // one entry per column
  std::span<double> u;        // X v, one entry per document
  std::span<double> out;      // X' z, one entry per column
};

template <class Matrix>
class Sweeper {
 public:
  Sweeper(const Matrix& X, const Documents& problem, int threads)
      : X_(X),
        problem_(problem),
        threads_(threads),
        blocks_(make_blocks(problem, X.bytes_per_row())),
        by_column_(X.n_columns() > kManyColumns) {}

  // u = X v; z = f(q, u, z, scratch) for every query q; out = X' z. f gets the parts of u and z
  // that belong to its query.
  template <class F>
  void sweep(const SweepVectors& vectors, F&& f, double* z) const {
    const double* const v = vectors.v.data();
    double *const u = vectors.u.data(), *const out = vectors.out.data();
    Partials partials(by_column_ ? 0 : blocks_.size(), X_.n_columns());
    parallel_for(n_blocks(), threads_, make_scratch, [&](Index b, Scratch& scratch) {
      if (blocks_[b].fused && !by_column_) {
        sweep_block(blocks_[b], v, u, f, z, partials[b], scratch);
      } else {
        X_.dots(problem_.rows, blocks_[b].documents, v, u);
      }
    });
    const Done done = by_column_ ? Done::nothing : Done::fused_blocks;
    map_queries(problem_, blocks_, done, u, f, z, threads_);
    if (by_column_) {
      transpose_by_column(z, out);
      return;
    }
    const std::vector<Index> left =
        blocks_where(blocks_, [](const Block& block) { return !block.fused; });
    parallel_for(static_cast<Index>(left.size()), threads_,
                 [&](Index k) { accumulate(blocks_[left[k]].documents, z, partials[left[k]]); });
    partials.add_up(out);
  }

  // out = X' z
  void transpose(const double* z, double* out) const {
    if (by_column_) {
      transpose_by_column(z, out);
      return;
    }
    Partials partials(blocks_.size(), X_.n_columns());
    parallel_for(n_blocks(), threads_,
                 [&](Index b) { accumulate(blocks_[b].documents, z, partials[b]); });
    partials.add_up(out);
  }

  // Row g of out = X' z over the documents bounds[g] .. bounds[g + 1] alone.
  void transpose_by_group(const double* z, const Index* bounds, Index n_groups, double* out) const {
    parallel_for(n_groups, threads_, [&](Index g) {
      double* const row = out + g * X_.n_columns();
      std::fill_n(row, X_.n_columns(), 0.0);
      accumulate({bounds[g], bounds[g + 1]}, z, row);
    });
  }

 private:
  template <class F>
  void sweep_block(const Block& block, const double* v, double* u, F&& f, double* z, double* part,
                   Scratch& scratch) const {
    const Range all = block.queries;
    X_.dots(problem_.rows, problem_.documents(all.first), v, u);
    for (Index q = all.first; q < all.last; ++q) {
      const Range docs = problem_.documents(q);
      f(q, u + docs.first, z + docs.first, scratch);
      const Range next = q + 1 < all.last ? problem_.documents(q + 1) : Range{docs.last, docs.last};
      X_.accumulate_then_dots(problem_.rows, docs, z, part, next, v, u);
    }
  }

  void accumulate(Range docs, const double* z, double* out) const {
    X_.accumulate_then_dots(problem_.rows, docs, z, out, {docs.last, docs.last}, nullptr, nullptr);
  }

  // Each range of columns belongs to one thread, which adds to it in document order.
  void transpose_by_column(const double* z, double* out) const {
    for_each_column_range(X_, threads_, threads_, [&](Index lower, Index upper) {
      std::fill(out + lower, out + std::max(lower, upper), 0.0);
      for (Index i = 0; i < problem_.n_documents(); ++i) {
        if (z[i] == 0.0) continue;
        const Index row = problem_.row(i);
        X_.for_each(row, lower, upper, [&](Index j, double x) { out[j] += x * z[i]; });
      }
    });
  }

  Index n_blocks() const { return static_cast<Index>(blocks_.size()); }

  const Matrix& X_;
  const Documents& problem_;
  int threads_;
  std::vector<Block> blocks_;
  bool by_column_;
};

}  // namespace marginrank
