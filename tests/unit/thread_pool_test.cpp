#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <dic/error.hpp>
#include <latch>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/parallel.hpp"

namespace dic {
namespace {

TEST(ThreadPool, VisitsEveryIndexOnceWithAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 8}) {
    core::ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (std::int64_t n : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> visits(n);
      pool.parallel_for(n, 3, [&](std::int64_t begin, std::int64_t end, int worker) {
        ASSERT_LT(worker, threads);
        for (std::int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const auto& count : visits) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, FindsIndicesInAscendingOrder) {
  const auto is_wanted = [](std::int64_t i) { return i % 7 == 3 || i > 20'000; };
  for (const int threads : {1, 3}) {
    core::ThreadPool pool(threads);
    for (const std::int64_t n : {0, 1, 100, 4096, 4097, 20'010}) {
      std::vector<std::int64_t> expected;
      std::vector<int> visits(n);
      for (std::int64_t i = 0; i < n; ++i)
        if (is_wanted(i)) expected.push_back(i);
      EXPECT_EQ(core::indices_where(pool, n, is_wanted), expected) << n;
      EXPECT_EQ(core::count_where(pool, n, is_wanted), std::ssize(expected)) << n;
      core::for_each_index(pool, n, [&](std::int64_t i) { ++visits[i]; });
      EXPECT_EQ(visits, std::vector<int>(n, 1));
    }
  }
}

TEST(ThreadPool, ManyShortLoopsFollowEachOther) {
  core::ThreadPool pool(4);  // some threads wake after a loop has ended, or after the next one has begun
  for (int loop = 0; loop < 3000; ++loop) {
    std::array<std::atomic<int>, 6> visits = {};
    pool.parallel_for(6, 1, [&](std::int64_t begin, std::int64_t, int) { visits[begin] += loop; });
    for (const auto& sum : visits) ASSERT_EQ(sum, loop);
  }
}

TEST(ThreadPool, ThrowsWhatABodyThrewAndStaysUsable) {
  core::ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(100, 1,
                                 [](auto begin, auto, int) {
                                   if (begin == 40) throw FileError("x");
                                 }),
               FileError);
  std::atomic<int> visited = 0;
  pool.parallel_for(10, 1, [&](auto, auto, int) { ++visited; });
  EXPECT_EQ(visited, 10);
}

TEST(ThreadPool, OfSizeOneRunsChunksInOrderInTheCallingThread) {
  core::ThreadPool pool(1);
  std::vector<std::int64_t> begins;
  pool.parallel_for(10, 3, [&](std::int64_t begin, std::int64_t end, int worker) {
    begins.push_back(begin);
    EXPECT_EQ(end, std::min<std::int64_t>(begin + 3, 10));
    EXPECT_EQ(worker, 0);
  });
  EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 3, 6, 9}));
}

/// Runs body(caller) in this many threads, which begin at the same time.
template <typename Body>
void run_in_threads(int callers, const Body& body) {
  std::latch all_there(callers);
  std::vector<std::jthread> threads;
  for (int caller = 0; caller < callers; ++caller)
    threads.emplace_back([&, caller] {
      all_there.arrive_and_wait();
      body(caller);
    });
}

TEST(ThreadPool, SeveralThreadsRunLoopsAtTheSameTime) {
  for (const int size : {1, 2, 4}) {
    core::ThreadPool pool(size);
    run_in_threads(4, [&](int caller) {
      for (int loop = 0; loop < 300; ++loop) {
        const std::int64_t n = 1 + (7 * caller + loop) % 50;
        std::vector<std::atomic<int>> visits(n);
        std::vector<std::atomic<int>> inside(size);  // chunks that use the same scratch memory
        pool.parallel_for(n, 1 + loop % 3, [&](std::int64_t begin, std::int64_t end, int worker) {
          ASSERT_EQ(++inside[worker], 1);
          for (std::int64_t i = begin; i < end; ++i) ++visits[i];
          --inside[worker];
        });
        for (const auto& count : visits) ASSERT_EQ(count, 1);
      }
    });
  }
}

TEST(ThreadPool, LoopWaitsForNoOtherLoop) {
  core::ThreadPool pool(2);
  std::latch both_threads_busy(2), other_loop_ended(1);
  std::jthread busy([&] {
    pool.parallel_for(2, 1, [&](auto, auto, int) {
      both_threads_busy.count_down();
      other_loop_ended.wait();
    });
  });
  both_threads_busy.wait();
  std::atomic<int> visited = 0;
  pool.parallel_for(10, 1, [&](auto, auto, int worker) {
    EXPECT_EQ(worker, 0) << "no thread of the pool is free";
    ++visited;
  });
  EXPECT_EQ(visited, 10);
  other_loop_ended.count_down();
}

TEST(ThreadPool, FreeThreadHelpsASecondLoop) {
  core::ThreadPool pool(3);
  std::latch first_waits(1), second_has_helper(2), end(1);
  std::atomic<int> in_first = 0;
  std::jthread first([&] {
    pool.parallel_for(2, 1, [&](auto, auto, int) {  // one helper at most
      if (++in_first == 2) first_waits.count_down();
      end.wait();
    });
  });
  first_waits.wait();
  pool.parallel_for(2, 1, [&](auto, auto, int) { second_has_helper.arrive_and_wait(); });
  end.count_down();
}

TEST(ThreadPool, LoopMayUseFewerThreads) {
  core::ThreadPool pool(4);
  for (const int most : {1, 2, 3}) {
    std::atomic<int> inside = 0, largest = 0, visited = 0;
    pool.parallel_for(
        200, 1,
        [&](auto, auto, int) {
          const int now = ++inside;
          for (int seen = largest; seen < now && !largest.compare_exchange_weak(seen, now);) {
          }
          ++visited;
          std::this_thread::yield();
          --inside;
        },
        most);
    EXPECT_EQ(visited, 200);
    EXPECT_LE(largest, most);
  }
}

TEST(ThreadPool, BodiesMayRunLoops) {
  for (const int size : {1, 2, 4}) {
    core::ThreadPool pool(size);
    std::vector<std::atomic<int>> visits(6 * 5 * 4);
    pool.parallel_for(6, 1, [&](std::int64_t a, auto, int) {
      pool.parallel_for(5, 1, [&](std::int64_t b, auto, int) {
        pool.parallel_for(4, 1, [&](std::int64_t c, auto, int) { ++visits[(a * 5 + b) * 4 + c]; });
      });
    });
    for (const auto& count : visits) ASSERT_EQ(count, 1);
  }
}

TEST(ThreadPool, ExceptionOfANestedLoopEndsBothLoops) {
  core::ThreadPool pool(3);
  EXPECT_THROW(pool.parallel_for(8, 1,
                                 [&](std::int64_t a, auto, int) {
                                   pool.parallel_for(8, 1, [&](std::int64_t b, auto, int) {
                                     if (a == 3 && b == 5) throw FileError("x");
                                   });
                                 }),
               FileError);
}

TEST(ThreadPool, ExceptionReachesItsOwnCallerAlone) {
  core::ThreadPool pool(3);
  run_in_threads(4, [&](int caller) {
    for (int loop = 0; loop < 200; ++loop) {
      std::atomic<int> visited = 0;
      const auto body = [&](std::int64_t begin, auto, int) {
        ++visited;
        if (caller % 2 == 1 && begin == 10) throw FileError("x");
      };
      if (caller % 2 == 1) {
        ASSERT_THROW(pool.parallel_for(40, 1, body), FileError);
      } else {
        ASSERT_NO_THROW(pool.parallel_for(40, 1, body));
        ASSERT_EQ(visited, 40);
      }
    }
  });
}

TEST(ThreadPool, CancelledLoopEndsEarlyBesideOthers) {
  core::ThreadPool pool(2);
  std::stop_source stop;
  std::atomic<std::int64_t> before_stop = 0, all = 0;
  run_in_threads(2, [&](int caller) {
    if (caller == 0) return pool.parallel_for(1000, 1, [&](auto, auto, int) { ++all; });
    const auto body = [&](std::int64_t begin, auto, int) {
      if (stop.stop_requested()) throw Cancelled("x");
      ++before_stop;
      if (begin == 5) stop.request_stop();
    };
    EXPECT_THROW(pool.parallel_for(1'000'000'000, 1, body), Cancelled);
  });
  EXPECT_EQ(all, 1000);
  EXPECT_LT(before_stop, 1'000'000);
}

}  // namespace
}  // namespace dic
