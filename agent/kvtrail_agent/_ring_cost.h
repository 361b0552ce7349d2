/* What emitting takes of the engine's time: some calls are timed, and count for all. No call of Python in this file.
 *
 * Of each stretch of so many calls one is timed, at a place drawn at random: an engine has a rhythm of its own, and a fixed
 * period would meet the same call of it each time. Every call is as likely as any other, so the sum is right on average.
 *
 * Timing costs two readings of the clock a timed call: under a nanosecond a call on average. What reading takes by itself is
 * left out. A call that takes much longer than any should was interrupted by the system: that is not the recorder's. */
#ifndef KVTRAIL_RING_COST_H
#define KVTRAIL_RING_COST_H

#include <time.h>

#include "_ring_write.h"

#define TIMED_EVENTS 256    /* one event of so many is timed; a power of two */
#define TIMED_CALLS 64      /* one call with many rows of so many; a power of two */
#define LONGEST_CALL_NS 10000
#define LONGEST_ROW_NS 20
#define READINGS 64

static inline uint64_t cost_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The next of a row of random numbers (xorshift). Threads that draw at once may draw the same number, which does no harm. */
static uint64_t next_random(Writer *self)
{
    uint64_t state = atomic_load_explicit(&self->random, memory_order_relaxed);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    atomic_store_explicit(&self->random, state, memory_order_relaxed);
    return state >> 32; /* the low bits are the least random */
}

/* A call that is timed begins: draw the place of the next one within its stretch. Kept out of line, for the sake of others. */
static __attribute__((noinline)) uint64_t begin_timed(Writer *self, Sample *sample, uint64_t stretch)
{
    uint64_t place = next_random(self) & (stretch - 1);
    uint64_t rest = atomic_exchange_explicit(&sample->rest, stretch - 1 - place, memory_order_relaxed);
    atomic_store_explicit(&sample->calls_left, rest + place, memory_order_relaxed);
    return cost_clock_ns();
}

/* When a call began, if it is one that is timed; else 0. Free but for a countdown. */
static inline uint64_t begin_call(Writer *self, Sample *sample, uint64_t stretch)
{
#ifdef Py_GIL_DISABLED
    uint64_t left = atomic_fetch_sub_explicit(&sample->calls_left, 1, memory_order_relaxed);
#else
    uint64_t left = atomic_load_explicit(&sample->calls_left, memory_order_relaxed);
    atomic_store_explicit(&sample->calls_left, left - 1, memory_order_relaxed);
#endif
    return __builtin_expect(left == 0, 0) ? begin_timed(self, sample, stretch) : 0;
}

static inline uint64_t begin_event(Writer *self)
{
    return begin_call(self, &self->events, TIMED_EVENTS);
}

/* Calls with many rows are counted apart: few of them may take more than all single events. */
static inline uint64_t begin_rows(Writer *self)
{
    return begin_call(self, &self->row_calls, TIMED_CALLS);
}

/* A timed call is over: count it for all that it stands for. */
static void end_timed(Writer *self, uint64_t began, uint64_t stands_for, uint64_t rows)
{
    uint64_t took = cost_clock_ns() - began, most = LONGEST_CALL_NS + LONGEST_ROW_NS * rows;
    took = took > self->reading_ns ? took - self->reading_ns : 0;
    atomic_fetch_add_explicit(&self->cost_ns, (took < most ? took : most) * stands_for, memory_order_relaxed);
}

static void begin_sample(Writer *self, Sample *sample, uint64_t stretch)
{
    uint64_t place = next_random(self) & (stretch - 1);
    atomic_store(&sample->calls_left, place);
    atomic_store(&sample->rest, stretch - 1 - place);
}

/* Begin to count, for a ring that begins. */
static void begin_cost(Writer *self)
{
    self->reading_ns = UINT64_MAX;
    for (int reading = 0; reading < READINGS; reading++) {
        uint64_t began = cost_clock_ns(), took = cost_clock_ns() - began;
        self->reading_ns = took < self->reading_ns ? took : self->reading_ns;
    }
    /* Never 0, from which no other number follows; another process and another writer draw others. */
    atomic_store(&self->random, ((cost_clock_ns() ^ (uintptr_t)self) * UINT64_C(0x9E3779B97F4A7C15)) | 1);
    begin_sample(self, &self->events, TIMED_EVENTS);
    begin_sample(self, &self->row_calls, TIMED_CALLS);
    atomic_store(&self->cost_ns, 0);
}

#endif
