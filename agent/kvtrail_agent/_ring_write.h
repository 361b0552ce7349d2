/* The shared memory side of the C writer: seqs, room, drops, texts, slots. No call of Python in this file.
 *
 * Under the interpreter's lock nothing here is ever interrupted by another thread, so the lock of this file costs nothing
 * there. On a free-threaded build seqs are drawn by compare-and-swap, and texts and drops take a mutex. */
#ifndef KVTRAIL_RING_WRITE_H
#define KVTRAIL_RING_WRITE_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "_ring_kinds.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a ring is little-endian: the writer in Python serves other machines"
#endif
_Static_assert(sizeof(long) == 8, "narrow fields are read as long");

#define OPEN (UINT64_C(1) << 63)
#define NOTHING_DRAWN 0

#define KNOWN_MEMBERS 64

/* A member of an enum that was emitted before, and its number. */
typedef struct {
    PyObject *member; /* a reference of our own, so that no other object can take its place in memory */
    uint64_t number;
} Known;

/* Which call is timed next. */
typedef struct {
    _Atomic uint64_t calls_left; /* so many calls come before it */
    _Atomic uint64_t rest;       /* and so many after it belong to its stretch */
} Sample;

typedef struct {
    PyObject_HEAD
    /* OPEN while events are taken, and the last seq that was handed out. One word, so that no seq is drawn after closing. */
    _Atomic uint64_t drawn;
    _Atomic uint64_t limit;    /* the highest seq that surely has room; a lost update costs one more look */
    Sample events;
    Sample row_calls;
    unsigned char *memory;     /* the whole ring; NULL before it is bound */
    unsigned char *slots;
    unsigned char *texts;
    uint64_t slot_count;
    uint64_t text_bytes;
    uint64_t text_end;         /* guarded by mutex */
    PyObject *now;             /* the clock, or NULL for the system's */
    PyObject *no_time;         /* the object that stands for an absent t_ns */
    PyObject *trace_bytes;     /* reads the trace ids that are not 32 plain digits */
    PyObject *names[NAMES_COUNT];
    Known known[KNOWN_MEMBERS];
    Py_buffer buffer;
    _Atomic uint64_t cost_ns;  /* what emitting took, as far as it was timed */
    _Atomic uint64_t random;   /* where the row of random numbers stands */
    uint64_t reading_ns;       /* what reading the clock takes by itself */
#ifdef Py_GIL_DISABLED
    PyMutex mutex;
#endif
} Writer;

#ifdef Py_GIL_DISABLED
#define LOCK(writer) PyMutex_Lock(&(writer)->mutex)
#define UNLOCK(writer) PyMutex_Unlock(&(writer)->mutex)
#else
#define LOCK(writer) ((void)0)
#define UNLOCK(writer) ((void)0)
#endif

static inline _Atomic uint64_t *word_at(const Writer *self, size_t offset)
{
    return (_Atomic uint64_t *)(self->memory + offset);
}

static inline uint64_t word(const Writer *self, size_t offset)
{
    return atomic_load_explicit(word_at(self, offset), memory_order_acquire);
}

static inline void set_word(const Writer *self, size_t offset, uint64_t value)
{
    atomic_store_explicit(word_at(self, offset), value, memory_order_release);
}

static inline int is_open(Writer *self)
{
    return (atomic_load_explicit(&self->drawn, memory_order_relaxed) & OPEN) != 0;
}

/* The first of so many seqs in a row; NOTHING_DRAWN once closed. */
static inline uint64_t draw(Writer *self, uint64_t count)
{
    uint64_t old = atomic_load_explicit(&self->drawn, memory_order_relaxed);
#ifdef Py_GIL_DISABLED
    do {
        if (!(old & OPEN))
            return NOTHING_DRAWN;
    } while (!atomic_compare_exchange_weak_explicit(&self->drawn, &old, old + count, memory_order_relaxed, memory_order_relaxed));
#else
    if (!(old & OPEN))
        return NOTHING_DRAWN;
    atomic_store_explicit(&self->drawn, old + count, memory_order_relaxed);
#endif
    return (old & ~OPEN) + 1;
}

/* Let the newest entry of the table of drops reach over some seqs, if they continue it or no further entry has room. */
static int grow_drop(Writer *self, uint64_t entry, unsigned stage, unsigned reason, uint64_t first, uint64_t last)
{
    size_t offset = HEADER_BYTES + (size_t)(entry % DROP_ENTRIES) * DROP_BYTES;
    uint64_t known_first = word(self, offset + DROP_FIRST), known_last = word(self, offset + DROP_LAST);
    int no_room = entry + 1 - word(self, READ_DROPS) >= DROP_ENTRIES;
    int is_same = self->memory[offset] == stage && self->memory[offset + 1] == reason;
    if (!no_room && !(is_same && first == known_last + 1))
        return 0;
    /* What was written inside a widened range is shipped, and so is no drop. */
    set_word(self, offset + DROP_FIRST, first < known_first ? first : known_first);
    set_word(self, offset + DROP_LAST, last > known_last ? last : known_last);
    return 1;
}

/* Put a range of dropped seqs on the books; the caller holds the lock. */
static void drop_locked(Writer *self, unsigned stage, unsigned reason, uint64_t first, uint64_t last)
{
    uint64_t written = word(self, WRITTEN_DROPS);
    if (written && grow_drop(self, written - 1, stage, reason, first, last))
        return;
    size_t offset = HEADER_BYTES + (size_t)(written % DROP_ENTRIES) * DROP_BYTES;
    memset(self->memory + offset, 0, DROP_BYTES);
    self->memory[offset] = (unsigned char)stage;
    self->memory[offset + 1] = (unsigned char)reason;
    set_word(self, offset + DROP_FIRST, first);
    set_word(self, offset + DROP_LAST, last);
    set_word(self, WRITTEN_DROPS, written + 1);
}

static void drop(Writer *self, unsigned stage, unsigned reason, uint64_t first, uint64_t last)
{
    LOCK(self);
    drop_locked(self, stage, reason, first, last);
    UNLOCK(self);
}

/* Whether the slots up to this seq are free; looks at the header only when the known limit is reached. */
static inline int has_room(Writer *self, uint64_t last)
{
    if (last <= atomic_load_explicit(&self->limit, memory_order_relaxed))
        return 1;
    uint64_t limit = word(self, READ_SEQ) + self->slot_count;
    atomic_store_explicit(&self->limit, limit, memory_order_relaxed);
    return last <= limit;
}

static inline unsigned char *slot_of(const Writer *self, uint64_t seq)
{
    return self->slots + (size_t)(seq & (self->slot_count - 1)) * RECORD_BYTES;
}

static inline void commit(unsigned char *slot, uint64_t seq)
{
    uint32_t low = (uint32_t)(seq & COMMIT_MASK);
    _Atomic uint32_t *at = (_Atomic uint32_t *)(slot + COMMIT_OFFSET);
    atomic_store_explicit(at, low ? low : COMMIT_OF_ZERO, memory_order_release);
}

/* Copy a record into the slot of its seq; the commit word goes last. */
static inline void put_record(const Writer *self, uint64_t seq, const unsigned char *record)
{
    unsigned char *slot = slot_of(self, seq);
    memcpy(slot, record, COMMIT_OFFSET);
    commit(slot, seq);
}

/* One row of a run behind its head. */
static inline void put_row(const Writer *self, uint64_t seq, uint64_t block, uint32_t place, uint32_t distance)
{
    unsigned char *slot = slot_of(self, seq);
    unsigned char *row = slot + ROW_OFFSET;
    memset(row + 16, 0, KIND_OFFSET - ROW_OFFSET - 16);
    memcpy(row, &block, 8);
    memcpy(row + 8, &place, 4);
    memcpy(row + 12, &distance, 4);
    slot[KIND_OFFSET] = ROW_KIND;
    commit(slot, seq);
}

/* Copy a text into its area and note where it lies in the record; the reason of a drop, or 0. The caller holds the lock. */
static unsigned put_text(Writer *self, const char *text, size_t length, unsigned char *where)
{
    uint64_t begin = 0;
    uint32_t size = (uint32_t)length;
    if (length) {
        if (length > self->text_bytes / 2)
            return REASON_TOO_LARGE;
        begin = self->text_end;
        if (begin % self->text_bytes + length > self->text_bytes)
            begin += self->text_bytes - begin % self->text_bytes;
        if (begin + length - word(self, READ_TEXT) > self->text_bytes)
            return REASON_FULL;
        memcpy(self->texts + begin % self->text_bytes, text, length);
        self->text_end = begin + length;
    }
    memcpy(where, &begin, 8);
    memcpy(where + 8, &size, 4);
    return 0;
}

#endif
