// One sweep over X for several problems on the same documents.
//
// Rows are read once for all of them. Each problem has its own scores, pair statistics and sums
// X' z, block by block, so it gets the same bits in any company and for any number of threads.
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

// The part of one problem in a sweep: u = X v; z = map(q, u, z, scratch) for every query q;
// out = X' z. Where it has no pairs, z is zero. Without memory for z, it is not kept.
struct SharedProblem {
  SweepVectors vectors;
  double* z;
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
        by_column_(X.n_columns() > kManyColumns),
        chunk_(chunk_size(X.bytes_per_row())) {}

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
  static constexpr Index kFewestDocuments = 64;  // fewer would leave many rows outside of tiles

  // Documents of a chunk: as many as stay in cache, with what the problems keep of each. With
  // fewer, memory would be read in shorter pieces.
  static Index chunk_size(double bytes_per_row) {
    constexpr double kChunkBytes = 256 << 10, kMostDocuments = 512;
    const double fitting = std::min(kChunkBytes / std::max(bytes_per_row, 1.0), kMostDocuments);
    return std::max(static_cast<Index>(fitting), kFewestDocuments);
  }

  // Pointers of the problems of a batch, as the matrix takes them.
  struct Batch {
    std::vector<const double*> v;
    std::vector<double*> u, z, out;
    std::vector<Buffer<double>> own;  // z that are not kept, but needed until X is read again

    Batch(std::span<const SharedProblem> problems, Index n_documents, bool all_fused) {
      for (const SharedProblem& problem : problems) {
        v.push_back(problem.vectors.v.data());
        u.push_back(problem.vectors.u.data());
        out.push_back(problem.vectors.out.data());
        const bool needed = !problem.z && !all_fused;
        if (needed) own.emplace_back(n_documents);
        z.push_back(needed ? own.back().at(0) : problem.z);
      }
    }
  };

  // Work space of a thread: z of a chunk, own memory for it where it is not kept, and what the
  // matrix is to add up.
  struct ChunkScratch {
    Scratch pairs;
    std::vector<std::vector<double>> own;
    std::vector<const double*> z;
    std::vector<const double*> from;
    std::vector<double*> to;
  };

  // The sums by block of a batch may take about as much memory as the sums of one problem.
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
    for (Range chunk{block.queries.first, 0}; chunk.first < block.queries.last;
         chunk.first = chunk.last) {
      chunk.last = end_of_run(chunk.first, block.queries.last, chunk_);
      const Range docs = documents_of(chunk);
      X_.dots_of_many(documents_.rows, docs, block.documents.last, batch.v.data(),
                      static_cast<Index>(problems.size()), batch.u.data());
      map_chunk(problems, chunk, scratch);
      for (Range run{chunk.first, 0}; run.first < chunk.last; run.first = run.last) {
        run.last = end_of_run(run.first, chunk.last, kFewestDocuments);
        accumulate_run(problems, run, docs.first, part, scratch);
      }
    }
  }

  // z of each problem for the queries of a chunk.
  void map_chunk(std::span<const SharedProblem> problems, Range queries,
                 ChunkScratch& scratch) const {
    const Range docs = documents_of(queries);
    scratch.own.resize(problems.size());
    scratch.z.clear();
    for (std::size_t k = 0; k < problems.size(); ++k) {
      std::vector<double>& own = scratch.own[k];
      if (!problems[k].z) own.resize(std::max(own.size(), static_cast<std::size_t>(docs.size())));
      double* const z = problems[k].z ? problems[k].z + docs.first : own.data();
      scratch.z.push_back(z);
      for (Index q = queries.first; q < queries.last; ++q) {
        const Index at = documents_.offsets[q];
        problems[k].map(q, problems[k].vectors.u.data() + at, z + (at - docs.first), scratch.pairs);
      }
    }
  }

  // Adds the queries of a run to the sums, for the problems that have pairs in any of them: z is
  // zero for the others. z starts at the document `origin`.
  void accumulate_run(std::span<const SharedProblem> problems, Range queries, Index origin,
                      double* part, ChunkScratch& scratch) const {
    const Range docs = documents_of(queries);
    scratch.from.clear();
    scratch.to.clear();
    for (std::size_t k = 0; k < problems.size(); ++k) {
      Index q = queries.first;
      while (q < queries.last && !problems[k].has_pairs(q)) ++q;
      if (q == queries.last) continue;
      scratch.from.push_back(scratch.z[k] + (docs.first - origin));
      scratch.to.push_back(part + width(k));
    }
    X_.accumulate_many(documents_.rows, docs, scratch.from.data(),
                       static_cast<Index>(scratch.from.size()), scratch.to.data());
  }

  // The end of as many queries from `first` on as have that many documents, or `last`.
  Index end_of_run(Index first, Index last, Index n_documents) const {
    Index end = first + 1;
    while (end < last && documents_.offsets[end] < documents_.offsets[first] + n_documents) ++end;
    return end;
  }

  Range documents_of(Range queries) const {
    return {documents_.offsets[queries.first], documents_.offsets[queries.last]};
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
  Index chunk_;
};

}  // namespace marginrank
