// Parallel loops out of which exceptions come as exceptions, not as the end of the process.
#pragma once

#include <exception>
#include <optional>

#include "common.hpp"

namespace marginrank {

// f(i, state) for i in [0, n), one at a time as threads become free; each thread has a state of its
// own, made by make(). What goes wrong first is rethrown when all threads are done.
template <class Make, class F>
void parallel_for(Index n, int threads, Make&& make, F&& f) {
  std::exception_ptr error;
  auto guarded = [&](auto&& action) {
    try {
      action();
    } catch (...) {
#pragma omp critical(marginrank_error)
      if (!error) error = std::current_exception();
    }
  };
#pragma omp parallel num_threads(threads)
  {
    std::optional<decltype(make())> state;
    guarded([&] { state.emplace(make()); });
#pragma omp for schedule(dynamic, 1)
    for (Index i = 0; i < n; ++i) {
      if (state) guarded([&] { f(i, *state); });
    }
  }
  if (error) std::rethrow_exception(error);
}

template <class F>
void parallel_for(Index n, int threads, F&& f) {
  parallel_for(n, threads, [] { return 0; }, [&](Index i, int) { f(i); });
}

}  // namespace marginrank
