/* What emitting takes of the engine's time: some calls are timed, and count for all. No call of Python in this file.
 *
 * Timing costs two readings of the clock a timed call: under a nanosecond a call on average. What reading takes by itself is
 * left out. A call that takes much longer than any should was interrupted by the system: that is not the recorder's. */
#ifndef KVTRAIL_RING_COST_H
#define KVTRAIL_RING_COST_H

#include <time.h>

#include "_ring_write.h"

#define TIMED_EVENTS 256    /* one event of so many is timed */
#define TIMED_CALLS 64      /* one call with many rows of so many */
#define LONGEST_CALL_NS 10000
#define LONGEST_ROW_NS 20
#define READINGS 64

static inline uint64_t cost_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* When a call began, if it is one that is timed; else 0. Free but for that: the number is that of the seq it draws. */
static inline uint64_t begin_event(Writer *self)
{
    uint64_t drawn = atomic_load_explicit(&self->drawn, memory_order_relaxed);
    return __builtin_expect(drawn % TIMED_EVENTS == 0, 0) ? cost_clock_ns() : 0;
}

/* The same for a call with many rows, which are counted by calls. */
static inline uint64_t begin_rows(Writer *self)
{
    uint64_t calls = atomic_load_explicit(&self->row_calls, memory_order_relaxed);
    atomic_store_explicit(&self->row_calls, calls + 1, memory_order_relaxed); /* a lost update times one call more */
    return calls % TIMED_CALLS == 0 ? cost_clock_ns() : 0;
}

/* A timed call is over: count it for all that it stands for. */
static void end_timed(Writer *self, uint64_t began, uint64_t stands_for, uint64_t rows)
{
    uint64_t took = cost_clock_ns() - began, most = LONGEST_CALL_NS + LONGEST_ROW_NS * rows;
    took = took > self->reading_ns ? took - self->reading_ns : 0;
    atomic_fetch_add_explicit(&self->cost_ns, (took < most ? took : most) * stands_for, memory_order_relaxed);
}

/* Begin to count, for a ring that begins. */
static void begin_cost(Writer *self)
{
    self->reading_ns = UINT64_MAX;
    for (int reading = 0; reading < READINGS; reading++) {
        uint64_t began = cost_clock_ns(), took = cost_clock_ns() - began;
        self->reading_ns = took < self->reading_ns ? took : self->reading_ns;
    }
    atomic_store(&self->row_calls, 0);
    atomic_store(&self->cost_ns, 0);
}

#endif
