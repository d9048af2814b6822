// Parallel loops: idle threads take small pieces of work, and an exception in a thread is rethrown
// in the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>

#include "base/types.hpp"

namespace marginrank {

// Work that several threads do at once. run() takes pieces of the work until none is left, so
// once one thread returns from it there is nothing more to begin.
class Work {
 public:
  virtual void run() noexcept = 0;

 protected:
  ~Work() = default;
};

// Runs the work on the calling thread and on up to `helpers` others; returns when all that have
// begun it are done. A helper that has not begun is not waited for: its core may be busy with
// something else for a long time.
void run_with_helpers(Work& work, int helpers);

// f(i, state) for i in [0, n); each thread has a state of its own, made by make().
template <class Make, class F>
class Loop final : public Work {
 public:
  Loop(Index n, Make& make, F& f) : n_(n), make_(make), f_(f) {}

  void run() noexcept override {
    try {
      std::optional<decltype(make_())> state;
      for (Index i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n_;) {
        if (!state) state.emplace(make_());
        f_(i, *state);
      }
    } catch (...) {
      next_.store(n_, std::memory_order_relaxed);
      if (!failed_.test_and_set()) error_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const Index n_;
  Make& make_;
  F& f_;
  std::atomic<Index> next_{0};
  std::atomic_flag failed_;
  std::exception_ptr error_;
};

// The first exception ends the loop and is rethrown.
template <class Make, class F>
void parallel_for(Index n, int threads, Make&& make, F&& f) {
  Loop loop(n, make, f);
  run_with_helpers(loop, static_cast<int>(std::min<Index>(threads, n)) - 1);
  loop.rethrow();
}

template <class F>
void parallel_for(Index n, int threads, F&& f) {
  parallel_for(n, threads, [] { return 0; }, [&](Index i, int) { f(i); });
}

}  // namespace marginrank
