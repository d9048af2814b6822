// The threads that help with parallel loops.
//
// They spin for a moment and then sleep, both while they wait for work and while a loop waits for
// them: a spinning thread may occupy the core that the thread it waits for needs. A caller that
// sleeps lets the system move that thread to its own core.
#include "base/parallel.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace marginrank {
namespace {

// About the cost of sleeping and waking up, which loops in quick succession avoid.
constexpr std::chrono::microseconds kSpin{50};

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until the condition holds, but not for long.
template <class Condition>
void spin_until(Condition&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  while (!condition() && std::chrono::steady_clock::now() < deadline) pause_briefly();
}

// Signals belong to the threads of the interpreter: a signal delivered to a helper would not
// interrupt the main thread's wait. Faults stay with the thread that causes them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Several threads may call run() at once, and work may call it again: helpers go to the first loop
// that wants one. Never destroyed, because its threads may outlive static destructors.
class ThreadPool {
 public:
  void run(Work& work, int helpers) {
    Job job(work, helpers);
    open(job);
    work.run();
    close(job);
  }

 private:
  struct Job {
    Job(Work& w, int helpers) : work(w), wanted(helpers) {}

    Work& work;
    int wanted;                   // helpers that may still begin
    std::atomic<int> running{0};  // helpers that have begun and are not done
    std::condition_variable done;
  };

  void open(Job& job) {
    int to_wake;
    {
      const std::lock_guard lock(mutex_);
      while (size_ < job.wanted && start_thread()) ++size_;
      jobs_.push_back(&job);
      n_opened_.fetch_add(1, std::memory_order_relaxed);
      to_wake = std::min(job.wanted, asleep_);
    }
    for (; to_wake > 0; --to_wake) opened_.notify_one();
  }

  // Nothing is left to begin, so only helpers that have begun are waited for.
  void close(Job& job) {
    std::unique_lock lock(mutex_);
    std::erase(jobs_, &job);
    if (job.running == 0) return;
    lock.unlock();
    spin_until([&] { return job.running == 0; });
    lock.lock();  // also lets the last helper get out of the job
    job.done.wait(lock, [&] { return job.running == 0; });
  }

  // False if the system provides no more threads; loops then continue with the existing ones.
  bool start_thread() {
    const SignalsBlocked blocked;
    try {
      std::thread([this] { serve(); }).detach();
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job& job = next_job(lock);
      --job.wanted;
      ++job.running;
      lock.unlock();
      job.work.run();
      lock.lock();
      job.wanted = 0;
      if (--job.running == 0) job.done.notify_one();
    }
  }

  Job& next_job(std::unique_lock<std::mutex>& lock) {
    for (bool patient = true;; patient = !patient) {
      for (Job* job : jobs_) {
        if (job->wanted > 0) return *job;
      }
      if (patient) {
        const auto seen = n_opened_.load(std::memory_order_relaxed);
        lock.unlock();
        spin_until([&] { return n_opened_.load(std::memory_order_relaxed) != seen; });
        lock.lock();
      } else {
        ++asleep_;
        opened_.wait(lock);
        --asleep_;
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  std::vector<Job*> jobs_;
  std::atomic<unsigned> n_opened_{0};
  int size_ = 0, asleep_ = 0;
};

std::atomic<ThreadPool*> pool{nullptr};

// Threads do not survive a fork, and one of them may have held a lock: the child gets a new pool,
// and the old one is left untouched.
void renew_pool() { pool.store(std::make_unique<ThreadPool>().release()); }

[[maybe_unused]] const bool kReady = [] {
  renew_pool();
  return pthread_atfork(nullptr, nullptr, renew_pool) == 0;
}();

}  // namespace

void run_with_helpers(Work& work, int helpers) {
  if (helpers > 0) {
    pool.load()->run(work, helpers);
  } else {
    work.run();
  }
}

}  // namespace marginrank
