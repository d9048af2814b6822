// Sweeps over X: a query's rows are read once for X v, the pair statistics and X' z.
//
// Work is cut into blocks that depend on the data alone, and partial sums are added in block order,
// so that results are bitwise the same for any number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "matrix/views.hpp"
#include "pairs.hpp"
#include "parallel.hpp"

namespace marginrank {

struct Block {
  Range queries;
  Range documents;
  bool whole;  // whole queries, not a part of one
  bool fused;  // whole queries that fit in cache
};

constexpr Index kBlocks = 64;
constexpr Index kSmallBlock = 512;              // documents; less is not worth a task
constexpr double kCacheBytes = 8 << 20;         // rows of one query beyond this leave the cache
constexpr Index kManyColumns = Index{1} << 16;  // more columns than this: no partial sums by block

inline std::vector<Block> make_blocks(const Documents& problem, double bytes_per_row) {
  const Index target = std::max(problem.n_documents() / kBlocks, kSmallBlock);
  std::vector<Block> blocks;
  Block open{{0, 0}, {0, 0}, true, true};
  auto close = [&](Index q) {
    if (open.documents.size() > 0) blocks.push_back(open);
    open = {{q, q}, {problem.offsets[q], problem.offsets[q]}, true, true};
  };
  for (Index q = 0; q < problem.n_queries; ++q) {
    const Range docs = problem.documents(q);
    if (docs.size() > target || static_cast<double>(docs.size()) * bytes_per_row > kCacheBytes) {
      close(q);
      for (Index i = docs.first; i < docs.last; i += target) {
        blocks.push_back(
            {{q, q + 1}, {i, std::min(i + target, docs.last)}, docs.size() <= target, false});
      }
      close(q + 1);
      continue;
    }
    open.queries.last = q + 1;
    open.documents.last = docs.last;
    if (open.documents.size() >= target) close(q + 1);
  }
  close(problem.n_queries);
  return blocks;
}

// The numbers of some blocks: those a loop has nothing to do for would only wake threads up.
template <class Condition>
std::vector<Index> blocks_where(const std::vector<Block>& blocks, Condition&& condition) {
  std::vector<Index> chosen;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (condition(blocks[b])) chosen.push_back(static_cast<Index>(b));
  }
  return chosen;
}

inline Scratch make_scratch() { return Scratch(); }

enum class Done { nothing, fused_blocks };

// z = f(q, u, z, scratch) for every query that is not done yet.
template <class F>
void map_queries(const Documents& problem, const std::vector<Block>& blocks, Done done,
                 const double* u, F&& f, double* z, int threads) {
  auto apply = [&](Index q, Scratch& scratch) {
    f(q, u + problem.offsets[q], z + problem.offsets[q], scratch);
  };
  const std::vector<Index> whole = blocks_where(blocks, [&](const Block& block) {
    return block.whole && !(block.fused && done == Done::fused_blocks);
  });
  const auto n_whole = static_cast<Index>(whole.size());
  parallel_for(n_whole, threads, make_scratch, [&](Index k, Scratch& scratch) {
    const Range queries = blocks[whole[k]].queries;
    for (Index q = queries.first; q < queries.last; ++q) apply(q, scratch);
  });
  const std::vector<Index> split = blocks_where(blocks, [&](const Block& block) {
    return !block.whole && block.documents.first == problem.offsets[block.queries.first];
  });
  // Long queries: side by side if there are enough of them, else each with all threads.
  const bool side_by_side = static_cast<int>(split.size()) >= std::min(threads, 3);
  const auto n_split = static_cast<Index>(split.size());
  parallel_for(n_split, side_by_side ? threads : 1, make_scratch, [&](Index k, Scratch& scratch) {
    scratch.threads = side_by_side ? 1 : threads;
    apply(blocks[split[k]].queries.first, scratch);
  });
}

// A vector of n sums for each block, kept two cache lines apart: neighbouring blocks are worked on
// by different threads, which must not write to one line.
class Partials {
 public:
  Partials(std::size_t n_blocks, Index n)
      : n_(n), lines_(static_cast<std::size_t>(n) / 8 + 3), sums_(n_blocks * lines_) {}

  double* operator[](std::size_t block) { return sums_[block * lines_].lane; }

  void add_up(double* out) {
    std::fill_n(out, n_, 0.0);
    for (std::size_t block = 0; block * lines_ < sums_.size(); ++block) {
      const double* part = (*this)[block];
      for (Index j = 0; j < n_; ++j) out[j] += part[j];
    }
  }

 private:
  Index n_;
  std::size_t lines_;
  std::vector<Vec8> sums_;
};

// f(lower, upper) for ranges of columns of about the same work. Each costs a search in every row.
template <class Matrix, class F>
void for_each_column_range(const Matrix& X, int n_ranges, int threads, F&& f) {
  const std::vector<Index> bounds = X.split_columns(n_ranges);
  parallel_for(n_ranges, threads, [&](Index k) { f(bounds[k], bounds[k + 1]); });
}

template <class Matrix>
class Sweeper {
 public:
  Sweeper(const Matrix& X, const Documents& problem, int threads)
      : X_(X),
        problem_(problem),
        threads_(threads),
        blocks_(make_blocks(problem, X.bytes_per_row())),
        by_column_(X.n_columns() > kManyColumns) {}

  // u = X v; z = f(q, u, z, scratch) for every query q; out = X' z. Without v, u is taken as
  // given. f gets the parts of u and z that belong to its query.
  template <class F>
  void sweep(const double* v, double* u, F&& f, double* z, double* out) const {
    Partials partials(by_column_ ? 0 : blocks_.size(), X_.n_columns());
    parallel_for(n_blocks(), threads_, make_scratch, [&](Index b, Scratch& scratch) {
      if (blocks_[b].fused && !by_column_) {
        sweep_block(blocks_[b], v, u, f, z, partials[b], scratch);
      } else if (v) {
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
    if (v) X_.dots(problem_.rows, problem_.documents(all.first), v, u);
    for (Index q = all.first; q < all.last; ++q) {
      const Range docs = problem_.documents(q);
      f(q, u + docs.first, z + docs.first, scratch);
      const bool more = v && q + 1 < all.last;
      const Range next = more ? problem_.documents(q + 1) : Range{docs.last, docs.last};
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

// Documents of each query by descending score, ties in document order; positions in the whole.
inline void rank_documents(const double* scores, const Index* offsets, Index n_queries,
                           Index* order, int threads) {
  auto make_sorter = [] { return ScoreSorter(); };
  parallel_for(n_queries, threads, make_sorter, [&](Index q, ScoreSorter& sorter) {
    const Index first = offsets[q], size = offsets[q + 1] - first;
    sorter.entries.resize(static_cast<std::size_t>(size));
    for (Position i = 0; i < size; ++i) sorter.entries[i] = {-scores[first + i], i};
    sorter.sort();
    for (Index t = 0; t < size; ++t) order[first + t] = first + sorter.entries[t].document;
  });
}

// f(block, rows, state) for blocks of rows that depend on their number alone; each thread has a
// state of its own, made by make().
template <class Make, class F>
void for_each_row_block(Index n_rows, int threads, Make&& make, F&& f) {
  const Index size = std::max(n_rows / kBlocks, kSmallBlock);
  const Index n_blocks = (n_rows + size - 1) / size;
  parallel_for(n_blocks, threads, make, [&](Index b, auto& state) {
    f(b, Range{b * size, std::min((b + 1) * size, n_rows)}, state);
  });
}

template <class F>
void for_each_row_block(Index n_rows, int threads, F&& f) {
  for_each_row_block(
      n_rows, threads, [] { return 0; }, [&](Index b, Range rows, int) { f(b, rows); });
}

template <class Matrix>
double sum(const Matrix& X, int threads) {
  std::vector<double> part(static_cast<std::size_t>(X.n_rows() / kSmallBlock + kBlocks + 1));
  for_each_row_block(X.n_rows(), threads, [&](Index b, Range rows) { part[b] = X.sum_rows(rows); });
  return std::accumulate(part.begin(), part.end(), 0.0);
}

// Writes the loss of each query that has documents at given scores, and its gradient with respect
// to them to z. The order of the point `like`, if given, is taken as a first guess.
template <class Kernel>
void evaluate_pairs(const Kernel& kernel, const double* scores, QueryLoss* losses, double* z,
                    typename Kernel::Point& point, const typename Kernel::Point* like,
                    int threads) {
  const auto& problem = kernel.problem();
  auto f = [&](Index q, const double* s, double* out, Scratch& scratch) {
    losses[q] = kernel.evaluate(q, s, out, point, like, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, scores, f, z, threads);
}

// By query, the weight of the pairs that are active for the first piece at given scores.
template <class Kernel>
void active_weights(const Kernel& kernel, const double* scores, typename Kernel::Point& point,
                    double* weights, int threads) {
  const auto& problem = kernel.problem();
  std::vector<double> unused(static_cast<std::size_t>(problem.n_documents()));
  auto f = [&](Index q, const double* s, double*, Scratch& scratch) {
    weights[q] = kernel.active_weight(q, s, point, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, scores, f, unused.data(), threads);
}

// z = H u in score space.
template <class Kernel>
void hess_vec_pairs(const Kernel& kernel, const typename Kernel::Point& point, const double* u,
                    double* z, int threads) {
  const auto& problem = kernel.problem();
  auto f = [&](Index q, const double* in, double* out, Scratch& scratch) {
    kernel.hess_vec(q, in, out, point, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, u, f, z, threads);
}

// The same at w, with the scores and the gradient.
template <class Matrix, class Kernel>
void evaluate(const Matrix& X, const Kernel& kernel, const double* w, double* scores,
              QueryLoss* losses, double* z, double* gradient, typename Kernel::Point& point,
              const typename Kernel::Point* like, int threads) {
  const auto& problem = kernel.problem();
  auto f = [&](Index q, const double* u, double* out, Scratch& scratch) {
    losses[q] = kernel.evaluate(q, u, out, point, like, scratch);
  };
  Sweeper(X, problem, threads).sweep(w, scores, f, z, gradient);
}

// out = X' H X v and u = X v.
template <class Matrix, class Kernel>
void hess_vec(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point,
              const double* v, double* u, double* out, int threads) {
  const auto& problem = kernel.problem();
  Buffer<double> z(problem.n_documents());
  auto f = [&](Index q, const double* in, double* result, Scratch& scratch) {
    kernel.hess_vec(q, in, result, point, scratch);
    kernel.prefetch(q + 1, point);
  };
  Sweeper(X, problem, threads).sweep(v, u, f, z.at(0), out);
}

// Rows of X of a query's documents, in the order of the kernel.
template <class Kernel>
void gather_rows(const Kernel& kernel, const typename Kernel::Point& point, Index q,
                 std::vector<Index>& rows) {
  const Index size = kernel.problem().documents(q).size();
  rows.resize(static_cast<std::size_t>(size));
  for (Index t = 0; t < size; ++t) {
    rows[t] = kernel.problem().row(kernel.document(q, t, point));
  }
}

// Eight columns of the given rows, less the first row: H maps constants to zero, and taking a
// common offset off keeps it from drowning the digits.
template <class Matrix>
void gather_columns(const Matrix& X, const std::vector<Index>& rows, Index first,
                    std::vector<Vec8>& columns) {
  const Index last = std::min(first + 8, X.n_columns());
  columns.assign(rows.size(), Vec8{});
  for (std::size_t t = 0; t < rows.size(); ++t) {
    X.for_each(rows[t], first, last, [&](Index j, double x) { columns[t].lane[j - first] = x; });
  }
  const Vec8 offset = columns[0];
  for (Vec8& row : columns) {
    for (int c = 0; c < 8; ++c) row.lane[c] -= offset.lane[c];
  }
}

// For each group of eight columns of X: `state` = begin(), then f(state, first column, rows,
// columns, H columns) for each query, then end(state, first column). A group belongs to one thread.
template <class Matrix, class Kernel, class Begin, class F, class End>
void for_each_column_group(const Matrix& X, const Kernel& kernel,
                           const typename Kernel::Point& point, int threads, Begin&& begin, F&& f,
                           End&& end) {
  const auto& problem = kernel.problem();
  const Index n_groups = (X.n_columns() + 7) / 8;
  struct State {
    Scratch scratch;
    std::vector<Index> rows;
    std::vector<Vec8> columns, images;
  };
  auto make_state = [] { return State(); };
  parallel_for(n_groups, threads, make_state, [&](Index g, State& thread) {
    auto state = begin();
    for (Index q = 0; q < problem.n_queries; ++q) {
      if (!kernel.has_pairs(q)) continue;
      gather_rows(kernel, point, q, thread.rows);
      gather_columns(X, thread.rows, 8 * g, thread.columns);
      kernel.apply8(q, thread.columns, point, thread.images, thread.scratch);
      f(state, 8 * g, thread.rows, thread.columns, thread.images);
    }
    end(state, 8 * g);
  });
}

// H = X' H_s X, n x n row-major, with the Hessian H_s in score space.
template <class Matrix, class Kernel>
void hessian(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point, double* H,
             int threads) {
  const Index n = X.n_columns();
  auto begin = [&] { return std::vector<Vec8>(static_cast<std::size_t>(n)); };
  auto update = [&](std::vector<Vec8>& block, Index first, const std::vector<Index>& rows,
                    const std::vector<Vec8>&, const std::vector<Vec8>& images) {
    X.rank_update(rows, first, images.data(), block.data());
  };
  auto end = [&](const std::vector<Vec8>& block, Index first) {
    const Index width = std::min<Index>(8, n - first);
    for (Index a = first; a < n; ++a) {
      for (Index c = 0; c < width; ++c) {
        H[a * n + first + c] = H[(first + c) * n + a] = block[a].lane[c];
      }
    }
  };
  for_each_column_group(X, kernel, point, threads, begin, update, end);
}

}  // namespace marginrank
