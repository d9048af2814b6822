// One sweep over X for several problems on the same documents.
//
// Rows are read once for all of them. Everything else each has for itself: its scores, its pair
// statistics, and its sums X' z, block by block. So a problem gets the same bits whoever the others
// are, and for any number of threads.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/parallel.hpp"
#include "matrix/parts.hpp"
#include "sweeps/blocks.hpp"
#include "sweeps/queries.hpp"
#include "sweeps/sweeper.hpp"

namespace marginrank {

// What one problem does in a sweep: u = X v; z = map(q, u, z, scratch) for every query q;
// out = X' z. Where it has no pairs, z is zero. Without memory for z, it is not kept.
struct SharedProblem {
  const double* v;
  double* u;
  double* z;
  double* out;
  std::function<void(Index q, const double* u, double* z, Scratch& scratch)> map;
  std::function<bool(Index q)> has_pairs;
};

template <class Matrix>
class SharedSweeper {
 public:
  SharedSweeper(const Matrix& X, const Documents& documents, int threads)
      : X_(X),
        documents_(documents),
        threads_(threads),
        blocks_(make_blocks(documents, X.bytes_per_row())),
        by_column_(X.n_columns() > kManyColumns) {}

  void sweep(std::span<const SharedProblem> problems) const {
    for_each_batch(problems.size(), [&](std::size_t first, std::size_t count) {
      sweep_batch(problems.subspan(first, count));
    });
  }

  // u[k] = X v[k]
  void dots(std::span<const double* const> v, std::span<double* const> u) const {
    parallel_for(n_blocks(), threads_, [&](Index b) { dots(blocks_[b], v.data(), u); });
  }

  // out[k] = X' z[k]
  void transpose(std::span<const double* const> z, std::span<double* const> out) const {
    for_each_batch(z.size(), [&](std::size_t first, std::size_t count) {
      transpose_batch(z.subspan(first, count), out.subspan(first, count));
    });
  }

 private:
  static constexpr Index kChunk = 64;  // documents; fewer would leave many rows outside of tiles

  // Pointers of the problems of a batch, as the matrix takes them.
  struct Batch {
    std::vector<const double*> v;
    std::vector<double*> u, z, out;
    std::vector<Buffer<double>> own;  // z that are not kept, but needed until X is read again

    Batch(std::span<const SharedProblem> problems, Index n_documents, bool all_fused) {
      for (const SharedProblem& problem : problems) {
        v.push_back(problem.v);
        u.push_back(problem.u);
        out.push_back(problem.out);
        const bool needed = !problem.z && !all_fused;
        if (needed) own.emplace_back(n_documents);
        z.push_back(needed ? own.back().at(0) : problem.z);
      }
    }
  };

  // Work space of a thread: z of a chunk where it is not kept, and what the matrix is to add up.
  struct ChunkScratch {
    Scratch pairs;
    std::vector<std::vector<double>> z;
    std::vector<const double*> from;
    std::vector<double*> to;
  };

  // Sums by block of one batch take about as much memory as those of one problem may.
  template <class F>
  void for_each_batch(std::size_t count, F&& f) const {
    const Index fitting = std::max<Index>(kManyColumns / std::max<Index>(X_.n_columns(), 1), 1);
    const std::size_t at_once = by_column_ ? count : static_cast<std::size_t>(fitting);
    for (std::size_t first = 0; first < count; first += at_once) {
      f(first, std::min(at_once, count - first));
    }
  }

  void sweep_batch(std::span<const SharedProblem> problems) const {
    const std::vector<Index> unfused =
        blocks_where(blocks_, [this](const Block& block) { return !block.fused || by_column_; });
    const Batch batch(problems, documents_.n_documents(), unfused.empty());
    Partials partials(by_column_ ? 0 : blocks_.size(), width(problems.size()));
    auto make = [] { return ChunkScratch(); };
    parallel_for(n_blocks(), threads_, make, [&](Index b, ChunkScratch& scratch) {
      if (blocks_[b].fused && !by_column_) {
        sweep_block(blocks_[b], problems, batch, partials[b], scratch);
      } else {
        dots(blocks_[b], batch.v.data(), batch.u);
      }
    });
    const Done done = by_column_ ? Done::nothing : Done::fused_blocks;
    for (std::size_t k = 0; k < problems.size() && !unfused.empty(); ++k) {
      map_queries(documents_, blocks_, done, batch.u[k], problems[k].map, batch.z[k], threads_);
    }
    const std::vector<const double*> z(batch.z.begin(), batch.z.end());
    if (by_column_) {
      transpose_batch(z, batch.out);
      return;
    }
    accumulate_blocks(unfused, z, partials);
    add_up(partials, batch.out);
  }

  // Whole queries, a chunk at a time: its rows stay in cache from their scores to their sums.
  void sweep_block(const Block& block, std::span<const SharedProblem> problems, const Batch& batch,
                   double* part, ChunkScratch& scratch) const {
    scratch.z.resize(problems.size());
    for (Index q = block.queries.first, end; q < block.queries.last; q = end) {
      const Index first = documents_.offsets[q];
      for (end = q + 1; end < block.queries.last && documents_.offsets[end] < first + kChunk;) {
        ++end;
      }
      const Range docs{first, documents_.offsets[end]};
      X_.dots_of_many(documents_.rows, docs, block.documents.last, batch.v.data(),
                      static_cast<Index>(problems.size()), batch.u.data());
      scratch.from.clear();
      scratch.to.clear();
      for (std::size_t k = 0; k < problems.size(); ++k) {
        std::vector<double>& own = scratch.z[k];
        if (!problems[k].z) own.resize(std::max(own.size(), static_cast<std::size_t>(docs.size())));
        double* const z = problems[k].z ? problems[k].z + first : own.data();
        if (!map_chunk(problems[k], {q, end}, z, scratch.pairs)) continue;  // z is zero
        scratch.from.push_back(z);
        scratch.to.push_back(part + width(k));
      }
      X_.accumulate_many(documents_.rows, docs, scratch.from.data(),
                         static_cast<Index>(scratch.from.size()), scratch.to.data());
    }
  }

  // Tells whether any of the queries has pairs.
  bool map_chunk(const SharedProblem& problem, Range queries, double* z, Scratch& scratch) const {
    const Index first = documents_.offsets[queries.first];
    bool any = false;
    for (Index q = queries.first; q < queries.last; ++q) {
      const Index at = documents_.offsets[q];
      problem.map(q, problem.u + at, z + (at - first), scratch);
      any = any || problem.has_pairs(q);
    }
    return any;
  }

  void dots(const Block& block, const double* const* v, std::span<double* const> u) const {
    X_.dots_of_many(documents_.rows, block.documents, block.documents.last, v,
                    static_cast<Index>(u.size()), u.data());
  }

  void transpose_batch(std::span<const double* const> z, std::span<double* const> out) const {
    if (by_column_) {
      const Sweeper alone(X_, documents_, threads_);
      for (std::size_t k = 0; k < z.size(); ++k) alone.transpose(z[k], out[k]);
      return;
    }
    Partials partials(blocks_.size(), width(z.size()));
    accumulate_blocks(blocks_where(blocks_, [](const Block&) { return true; }), z, partials);
    add_up(partials, out);
  }

  void accumulate_blocks(const std::vector<Index>& chosen, std::span<const double* const> z,
                         Partials& partials) const {
    parallel_for(static_cast<Index>(chosen.size()), threads_, [&](Index c) {
      const Range docs = blocks_[chosen[c]].documents;
      std::vector<const double*> from;
      std::vector<double*> to;
      for (std::size_t k = 0; k < z.size(); ++k) {
        from.push_back(z[k] + docs.first);
        to.push_back(partials[chosen[c]] + width(k));
      }
      X_.accumulate_many(documents_.rows, docs, from.data(), static_cast<Index>(z.size()),
                         to.data());
    });
  }

  void add_up(Partials& partials, std::span<double* const> out) const {
    std::vector<double> sums(static_cast<std::size_t>(width(out.size())));
    partials.add_up(sums.data());
    for (std::size_t k = 0; k < out.size(); ++k) {
      std::copy_n(sums.data() + width(k), X_.n_columns(), out[k]);
    }
  }

  // Numbers that the sums of some problems take.
  Index width(std::size_t problems) const { return static_cast<Index>(problems) * X_.n_columns(); }
  Index n_blocks() const { return static_cast<Index>(blocks_.size()); }

  const Matrix& X_;
  const Documents& documents_;
  int threads_;
  std::vector<Block> blocks_;
  bool by_column_;
};

}  // namespace marginrank
