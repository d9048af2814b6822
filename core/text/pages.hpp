// Vectors whose memory is returned to the system when they are destroyed.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace marginrank {

// Memory that is returned to the system as soon as it is freed. malloc would keep it, so the parts
// of a text would occupy memory next to the result they were moved to.
template <class T>
struct PageAllocator {
  using value_type = T;

  T* allocate(std::size_t n) {
    void* pages =
        mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(pages);
  }
  void deallocate(T* pages, std::size_t n) { munmap(pages, n * sizeof(T)); }
  bool operator==(const PageAllocator&) const { return true; }
};

template <class T>
using Pages = std::vector<T, PageAllocator<T>>;

}  // namespace marginrank
