/* The writer of the ring in C: the same records as `ring_writer.py`, `ring_blocks.py` and `emit_methods.py`, byte for byte.
 *
 * Runs on the engine's threads. One emit is: convert the arguments into a record on the stack, draw a seq, see that its
 * slot is free, copy, store the commit word. No lock, no system call but the clock's, no allocation but the seq it returns.
 * Values that fit no field cost their own event, as a counted drop; nothing of it is raised. As in Python, a call that
 * does not match the method's signature is a TypeError and draws no seq. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "_ring_convert.h"
#include "_ring_cost.h"

#define ON_THE_STACK 512

typedef struct {
    const char *name;
    const Field *fields;
    unsigned char number;
    unsigned char required;
    unsigned char count;
    unsigned char empty[RECORD_BYTES]; /* the record of an event without any field */
} Kind;

#define KIND_ROW(name, fields, number, required, count) [number] = {#name, fields, number, required, count, {0}},
static Kind KINDS[LARGEST_KIND + 1] = {FOR_EACH_KIND(KIND_ROW)};

/* ---- arguments */

static PyObject *wrong_call(const Kind *kind, const char *problem)
{
    return PyErr_Format(PyExc_TypeError, "%s() %s", kind->name, problem);
}

/* The place of a parameter. Callers mostly name them in the order of the signature, so the search begins behind the last. */
static int parameter_of(const Writer *self, const Kind *kind, PyObject *name, int last)
{
    for (int number = last + 1; number < kind->count; number++)
        if (self->names[kind->fields[number].name] == name)
            return number;
    for (int number = 0; number <= last; number++)
        if (self->names[kind->fields[number].name] == name)
            return number;
    for (int number = 0; number < kind->count; number++)
        if (PyUnicode_CompareWithASCIIString(name, NAMES[kind->fields[number].name]) == 0)
            return number;
    return -1;
}

/* Sort keywords to their parameters; 0, or -1 with a TypeError. `values` holds the positional ones already. */
static int take_keywords(Writer *self, const Kind *kind, PyObject *const *given, PyObject *names, PyObject **values)
{
    Py_ssize_t count = PyTuple_Size(names);
    int parameter = -1;
    for (Py_ssize_t number = 0; number < count; number++) {
        parameter = parameter_of(self, kind, PyTuple_GetItem(names, number), parameter);
        if (parameter < 0 || values[parameter] != NULL) {
            wrong_call(kind, parameter < 0 ? "got an unexpected keyword argument" : "got one argument twice");
            return -1;
        }
        values[parameter] = given[number];
    }
    return 0;
}

static inline void begin_record(const Kind *kind, Record *record)
{
    memcpy(record->bytes, kind->empty, RECORD_BYTES);
    record->text = NULL;
    record->text_length = record->text_offset = record->has_time = 0;
}

/* Convert the values that are there; 0, or -1 with an error of Python's set. */
static int fill(Writer *self, const Kind *kind, PyObject *const *values, Record *record)
{
    begin_record(kind, record);
    for (int number = 0; number < kind->count; number++) {
        const Field *field = &kind->fields[number];
        if (values[number] != NULL && put_value(self, digit_form, field->width, field->offset, values[number], record) < 0)
            return -1;
    }
    return record->has_time ? 0 : stamp(self, record);
}

/* ---- one event */

/* A value was at fault: count `count` seqs as dropped. Whatever is no `Exception` (an interrupt) is passed on. */
static PyObject *refuse(Writer *self, uint64_t count)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear();
    uint64_t seq = draw(self, count);
    if (seq == NOTHING_DRAWN)
        return PyLong_FromLong(0);
    if (has_room(self, seq + count - 1))
        drop(self, STAGE_ENCODE, REASON_ENCODE_ERROR, seq, seq + count - 1);
    else
        drop(self, STAGE_RING, REASON_FULL, seq, seq + count - 1);
    return PyLong_FromUnsignedLongLong(seq);
}

/* Seqs and texts are drawn under one lock, so that texts lie in seq order. */
static uint64_t write_with_text(Writer *self, Record *record)
{
    LOCK(self);
    uint64_t seq = draw(self, 1);
    if (seq != NOTHING_DRAWN && !has_room(self, seq)) {
        drop_locked(self, STAGE_RING, REASON_FULL, seq, seq);
    } else if (seq != NOTHING_DRAWN) {
        unsigned reason = put_text(self, record->text, record->text_length, record->bytes + record->text_offset);
        if (reason)
            drop_locked(self, reason == REASON_FULL ? STAGE_RING : STAGE_ENCODE, reason, seq, seq);
        else
            put_record(self, seq, record->bytes);
    }
    UNLOCK(self);
    return seq;
}

static inline uint64_t write_plain(Writer *self, const Record *record)
{
    uint64_t seq = draw(self, 1);
    if (seq == NOTHING_DRAWN)
        return seq;
    if (has_room(self, seq))
        put_record(self, seq, record->bytes);
    else
        drop(self, STAGE_RING, REASON_FULL, seq, seq);
    return seq;
}

/* A call with arguments by name, or with too few or too many. */
static PyObject *emit_named(Writer *self, const Kind *kind, PyObject *const *given, Py_ssize_t count, PyObject *names)
{
    PyObject *values[MOST_PARAMETERS] = {NULL};
    Record record;
    if (count > kind->count)
        return wrong_call(kind, "got too many arguments");
    memcpy(values, given, (size_t)count * sizeof(*given));
    if (names != NULL && take_keywords(self, kind, given + count, names, values) < 0)
        return NULL;
    for (int number = 0; number < kind->required; number++)
        if (values[number] == NULL)
            return wrong_call(kind, "misses a required argument");
    if (fill(self, kind, values, &record) < 0)
        return refuse(self, 1);
    uint64_t seq = record.text_offset ? write_with_text(self, &record) : write_plain(self, &record);
    return PyLong_FromUnsignedLongLong(seq);
}

#define PUT_GIVEN(index, width, offset)                                                   \
    if (count == (index))                                                                 \
        goto filled;                                                                      \
    if (!LIKELY(put_value(self, form, WIDTH_##width, offset, given[index], &record) == 0))      \
        return refuse(self, 1);

/* The emit method of a kind. Arguments by position are converted by straight code, without a table, once for each form of
 * numbers; calls by name, and numbers of no known form, go by the table. */
#define KIND_METHOD(name, fields, number, required, most)                                                             \
    static INLINE PyObject *emit_##name##_as(                                                                        \
        DigitForm form, Writer *self, PyObject *const *given, Py_ssize_t count)                                       \
    {                                                                                                                 \
        Record record;                                                                                                \
        begin_record(&KINDS[number], &record);                                                                        \
        EACH_OF_##name(PUT_GIVEN)                                                                                     \
    filled:                                                                                                           \
        if (!record.has_time && stamp(self, &record) < 0)                                                             \
            return refuse(self, 1);                                                                                   \
        uint64_t seq = record.text_offset ? write_with_text(self, &record) : write_plain(self, &record);              \
        return PyLong_FromUnsignedLongLong(seq);                                                                      \
    }                                                                                                                 \
    static PyObject *emit_##name(PyObject *object, PyObject *const *given, Py_ssize_t count, PyObject *names)         \
    {                                                                                                                 \
        Writer *self = (Writer *)object;                                                                              \
        if (!is_open(self))                                                                                           \
            return PyLong_FromLong(0);                                                                                \
        uint64_t began = begin_event(self);                                                                           \
        PyObject *seq;                                                                                                \
        if (!LIKELY(names == NULL && count >= (required) && count <= (most)) || digit_form == NO_FORM)                \
            seq = emit_named(self, &KINDS[number], given, count, names);                                              \
        else                                                                                                          \
            seq = digit_form == SIZED ? emit_##name##_as(SIZED, self, given, count)                                   \
                                      : emit_##name##_as(TAGGED, self, given, count);                                 \
        if (!LIKELY(began == 0))                                                                                      \
            end_timed(self, began, TIMED_EVENTS, 0);                                                                  \
        return seq;                                                                                                   \
    }
FOR_EACH_KIND(KIND_METHOD)

/* ---- many rows of one kind */

typedef struct {
    const uint64_t *blocks;
    const uint32_t *slots; /* NULL where there are none */
    uint64_t count;
    void *owned_blocks;
    void *owned_slots;
    Py_buffer block_view;
    Py_buffer slot_view;
    uint64_t few_blocks[ON_THE_STACK];
    uint32_t few_slots[ON_THE_STACK];
} Rows;

/* A buffer of plain unsigned numbers of one width, or nothing (and no error). */
static const void *numbers_in_buffer(PyObject *source, Py_ssize_t width, const char *codes, Py_buffer *view)
{
    if (!PyObject_CheckBuffer(source) || PyObject_GetBuffer(source, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) {
        PyErr_Clear();
        view->obj = NULL;
        return NULL;
    }
    const char *code = view->format ? view->format : "B";
    if (*code == '<' || *code == '@' || *code == '=')
        code++;
    if (view->ndim == 1 && view->itemsize == width && *code && strchr(codes, *code) && !code[1])
        return view->buf;
    PyBuffer_Release(view);
    view->obj = NULL;
    return NULL;
}

/* Numbers of any sequence, converted one by one. `few` is used where it is large enough. */
static const void *numbers_in_sequence(Writer *self, PyObject *source, Py_ssize_t width, void *few, void **owned, uint64_t *count)
{
    PyObject *items = PySequence_Tuple(source);
    if (items == NULL)
        return NULL;
    Py_ssize_t length = PyTuple_Size(items);
    *count = (uint64_t)length;
    unsigned char *numbers = few;
    if (length > ON_THE_STACK && (numbers = *owned = PyMem_Malloc((size_t)(length * width))) == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t number = 0; numbers != NULL && number < length; number++) {
        uint64_t value;
        int failed = to_u64(self, digit_form, PyTuple_GetItem(items, number), &value);
        if (failed || (width == 4 && value > UINT32_MAX && refuse_range())) {
            numbers = NULL;
            break;
        }
        memcpy(numbers + number * width, &value, (size_t)width);
    }
    Py_DECREF(items);
    return numbers;
}

static void release_rows(Rows *rows)
{
    if (rows->block_view.obj != NULL)
        PyBuffer_Release(&rows->block_view);
    if (rows->slot_view.obj != NULL)
        PyBuffer_Release(&rows->slot_view);
    PyMem_Free(rows->owned_blocks);
    PyMem_Free(rows->owned_slots);
}

/* The rows of a call; 0, or -1 with an error set. `count` is right even then, where the blocks have a length at all. */
static int take_rows(Writer *self, PyObject *blocks, PyObject *slots, Rows *rows)
{
    uint64_t slot_count = 0;
    rows->blocks = numbers_in_buffer(blocks, 8, "QL", &rows->block_view);
    if (rows->blocks != NULL)
        rows->count = (uint64_t)rows->block_view.len / 8;
    else
        rows->blocks = numbers_in_sequence(self, blocks, 8, rows->few_blocks, &rows->owned_blocks, &rows->count);
    if (rows->blocks == NULL)
        return -1;
    if (slots == Py_None)
        return 0;
    rows->slots = numbers_in_buffer(slots, 4, "IL", &rows->slot_view);
    if (rows->slots != NULL)
        slot_count = (uint64_t)rows->slot_view.len / 4;
    else
        rows->slots = numbers_in_sequence(self, slots, 4, rows->few_slots, &rows->owned_slots, &slot_count);
    if (rows->slots == NULL)
        return -1;
    return slot_count == rows->count ? 0 : refuse_range();
}

static const Field *field_named(const Kind *kind, int name)
{
    for (int number = 0; number < kind->count; number++)
        if (kind->fields[number].name == name)
            return &kind->fields[number];
    return NULL;
}

/* One run: rows first, the head last, so that it is there whole or not at all. */
static void put_run(Writer *self, const Kind *kind, const Rows *rows, uint64_t from, uint64_t count, uint64_t seq, unsigned char *head)
{
    const Field *slot = field_named(kind, NAME_SLOT);
    for (uint64_t row = 1; row < count; row++) {
        /* Every row is a cache line that was last touched a round ago. */
        __builtin_prefetch(slot_of(self, seq + row + 12) + ROW_OFFSET, 1);
        put_row(self, seq + row, rows->blocks[from + row], rows->slots ? rows->slots[from + row] : UINT32_MAX, (uint32_t)row);
    }
    memcpy(head + field_named(kind, NAME_BLOCK)->offset, &rows->blocks[from], 8);
    if (slot != NULL && rows->slots != NULL)
        memcpy(head + slot->offset, &rows->slots[from], 4);
    put_record(self, seq, head);
}

/* The head of the run that begins at a later row: as the reader would have made that row out of the first head. */
static void advance_head(const Kind *kind, const Rows *rows, uint64_t from, uint64_t by, unsigned char *head)
{
    const Field *id = field_named(kind, NAME_ID), *parent = field_named(kind, NAME_PARENT);
    const Field *start = field_named(kind, NAME_TOKEN_START), *tokens = field_named(kind, NAME_TOKENS);
    uint64_t number;
    uint32_t begin, length;
    for (int field = 0; field < kind->count; field++)
        if (kind->fields[field].first_row_only)
            put_absent(&kind->fields[field], head);
    if (id != NULL && memcpy(&number, head + id->offset, 8) && number != UINT64_MAX) {
        number += by;
        memcpy(head + id->offset, &number, 8);
    }
    if (parent != NULL && memcpy(&number, head + parent->offset, 8) && number != UINT64_MAX)
        memcpy(head + parent->offset, &rows->blocks[from - 1], 8);
    if (start == NULL || tokens == NULL)
        return;
    memcpy(&begin, head + start->offset, 4);
    memcpy(&length, head + tokens->offset, 4);
    if (begin != UINT32_MAX && length != UINT32_MAX) {
        begin += (uint32_t)by * length;
        memcpy(head + start->offset, &begin, 4);
    }
}

static uint64_t write_rows(Writer *self, const Kind *kind, const Rows *rows, unsigned char *head)
{
    uint64_t most = self->slot_count / 4 < LARGEST_RUN ? self->slot_count / 4 : LARGEST_RUN;
    uint64_t first = draw(self, rows->count);
    if (first == NOTHING_DRAWN)
        return first;
    for (uint64_t from = 0; from < rows->count; from += most) {
        uint64_t count = rows->count - from < most ? rows->count - from : most;
        if (from)
            advance_head(kind, rows, from, most, head);
        if (has_room(self, first + from + count - 1))
            put_run(self, kind, rows, from, count, first + from, head);
        else
            drop(self, STAGE_RING, REASON_FULL, first + from, first + from + count - 1);
    }
    return first;
}

static const Kind *kind_of_rows(PyObject *number)
{
    long found = PyLong_AsLong(number);
    if (found < 1 || found > LARGEST_KIND || field_named(&KINDS[found], NAME_BLOCK) == NULL) {
        PyErr_SetString(PyExc_TypeError, "emit_blocks() takes a kind that has a block");
        return NULL;
    }
    return &KINDS[found];
}

/* The fields that hold for all rows, by keyword; blocks and slots are not among them. 0, or -1 with a TypeError. */
static int take_fields(Writer *self, const Kind *kind, PyObject *const *given, PyObject *names, PyObject *slots, PyObject **values)
{
    if (names != NULL && take_keywords(self, kind, given, names, values) < 0)
        return -1;
    for (int number = 0; number < kind->count; number++) {
        int name = kind->fields[number].name, by_row = name == NAME_BLOCK || name == NAME_SLOT;
        int is_missing = name == NAME_SLOT ? slots == Py_None : !by_row && values[number] == NULL;
        if ((by_row && values[number] != NULL) || (number < kind->required && is_missing)) {
            wrong_call(kind, "of blocks misses a required argument, or has a block or slot for all rows");
            return -1;
        }
    }
    if (slots != Py_None && field_named(kind, NAME_SLOT) == NULL) {
        wrong_call(kind, "has no slots");
        return -1;
    }
    return 0;
}

static PyObject *emit_blocks(PyObject *object, PyObject *const *given, Py_ssize_t count, PyObject *names)
{
    Writer *self = (Writer *)object;
    PyObject *values[MOST_PARAMETERS] = {NULL};
    PyObject *slots = count > 2 ? given[2] : Py_None, *result;
    Record head;
    Rows rows;
    if (!is_open(self))
        return PyLong_FromLong(0);
    if (count < 2 || count > 3)
        return PyErr_Format(PyExc_TypeError, "emit_blocks() takes a kind, blocks and slots, and the rest by keyword");
    uint64_t began = begin_rows(self);
    const Kind *kind = kind_of_rows(given[0]);
    if (kind == NULL || take_fields(self, kind, given + count, names, slots, values) < 0)
        return NULL;
    memset(&rows, 0, offsetof(Rows, few_blocks));
    if (take_rows(self, given[1], slots, &rows) < 0 || (rows.count && fill(self, kind, values, &head) < 0))
        result = refuse(self, rows.count ? rows.count : 1);
    else
        result = PyLong_FromUnsignedLongLong(rows.count ? write_rows(self, kind, &rows, head.bytes) : 0);
    release_rows(&rows);
    if (began)
        end_timed(self, began, TIMED_CALLS, rows.count);
    return result;
}

/* ---- life of a writer */

static void let_go(Writer *self)
{
    atomic_store(&self->drawn, 0);
    self->memory = NULL;
    if (self->buffer.obj != NULL)
        PyBuffer_Release(&self->buffer);
    self->buffer.obj = NULL;
    for (int number = 0; number < KNOWN_MEMBERS; number++)
        Py_CLEAR(self->known[number].member);
    Py_CLEAR(self->now);
    Py_CLEAR(self->no_time);
    Py_CLEAR(self->trace_bytes);
    for (int name = 0; name < NAMES_COUNT; name++)
        Py_CLEAR(self->names[name]);
}

static void Writer_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    let_go((Writer *)object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* _bind(memory, text_bytes, now, no_time, trace_bytes): begin to write into a ring, from seq 1. */
static PyObject *Writer_bind(PyObject *object, PyObject *args)
{
    Writer *self = (Writer *)object;
    PyObject *memory, *now, *no_time, *trace_bytes;
    unsigned long long slot_count = 0, text_bytes;
    if (!PyArg_ParseTuple(args, "OKOOO", &memory, &text_bytes, &now, &no_time, &trace_bytes))
        return NULL;
    let_go(self);
    if (PyObject_GetBuffer(memory, &self->buffer, PyBUF_WRITABLE) < 0)
        return NULL;
    if ((uint64_t)self->buffer.len > SLOTS_OFFSET + text_bytes)
        slot_count = ((uint64_t)self->buffer.len - SLOTS_OFFSET - text_bytes) / RECORD_BYTES;
    if (slot_count == 0 || slot_count & (slot_count - 1) || text_bytes == 0
        || (uint64_t)self->buffer.len != SLOTS_OFFSET + slot_count * RECORD_BYTES + text_bytes) {
        let_go(self);
        PyErr_SetString(PyExc_ValueError, "the memory has not the size of a ring");
        return NULL;
    }
    for (int name = 0; name < NAMES_COUNT; name++)
        if ((self->names[name] = PyUnicode_InternFromString(NAMES[name])) == NULL)
            return NULL;
    self->now = now == Py_None ? NULL : Py_NewRef(now);
    self->no_time = Py_NewRef(no_time);
    self->trace_bytes = Py_NewRef(trace_bytes);
    self->memory = self->buffer.buf;
    self->slots = self->memory + SLOTS_OFFSET;
    self->slot_count = slot_count;
    self->texts = self->slots + slot_count * RECORD_BYTES;
    self->text_bytes = text_bytes;
    self->text_end = 0;
#ifdef Py_GIL_DISABLED
    memset(&self->mutex, 0, sizeof(self->mutex)); /* a forked child may have inherited it held by nobody */
#endif
    begin_cost(self);
    atomic_store(&self->limit, slot_count);
    atomic_store(&self->drawn, OPEN);
    Py_RETURN_NONE;
}

static PyObject *Writer_draw(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(draw((Writer *)self, 1));
}

static PyObject *Writer_last_seq(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(atomic_load(&((Writer *)self)->drawn) & ~OPEN);
}

static PyObject *Writer_cost_ns(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(atomic_load(&((Writer *)self)->cost_ns));
}

/* _begin_at(seq): hand out this seq next. */
static PyObject *Writer_begin_at(PyObject *object, PyObject *seq)
{
    Writer *self = (Writer *)object;
    uint64_t next;
    if (to_u64(self, digit_form, seq, &next) < 0)
        return NULL;
    if (next == 0 || next >= OPEN) {
        PyErr_SetString(PyExc_ValueError, "seqs count from 1");
        return NULL;
    }
    atomic_store(&self->drawn, (atomic_load(&self->drawn) & OPEN) | (next - 1));
    Py_RETURN_NONE;
}

static PyObject *Writer_get_closed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(!is_open((Writer *)self));
}

static int Writer_set_closed(PyObject *object, PyObject *value, void *unused)
{
    Writer *self = (Writer *)object;
    (void)unused;
    int close = value == NULL ? 1 : PyObject_IsTrue(value);
    if (close < 0)
        return -1;
    if (close)
        atomic_fetch_and(&self->drawn, ~OPEN);
    else if (self->memory != NULL)
        atomic_fetch_or(&self->drawn, OPEN);
    return 0;
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))
#define METHOD_ROW(name, fields, number, required, count) {#name, FAST(emit_##name), METH_FASTCALL | METH_KEYWORDS, NULL},
static PyMethodDef METHODS[] = {
    FOR_EACH_KIND(METHOD_ROW)
    {"emit_blocks", FAST(emit_blocks), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"_bind", Writer_bind, METH_VARARGS, "Begin to write into a ring, from seq 1."},
    {"_draw", Writer_draw, METH_NOARGS, "Hand out a seq; 0 once closed."},
    {"_last_seq", Writer_last_seq, METH_NOARGS, "The highest seq that was handed out."},
    {"_cost_ns", Writer_cost_ns, METH_NOARGS, "What emitting took so far, by the calls that were timed."},
    {"_begin_at", Writer_begin_at, METH_O, "Hand out this seq next."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef ATTRIBUTES[] = {
    {"_closed", Writer_get_closed, Writer_set_closed, "Whether no more events are taken.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot SLOTS[] = {
    {Py_tp_dealloc, Writer_dealloc},
    {Py_tp_methods, METHODS},
    {Py_tp_getset, ATTRIBUTES},
    {Py_tp_doc, "The emit methods in C; a base for classes that have the rest in Python."},
    {0, NULL},
};

static PyType_Spec SPEC = {
    .name = "kvtrail_agent._ring.Writer",
    .basicsize = sizeof(Writer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = SLOTS,
};

static int fill_module(PyObject *module)
{
    learn_digits();
    for (int number = 1; number <= LARGEST_KIND; number++) {
        Kind *kind = &KINDS[number];
        kind->empty[KIND_OFFSET] = kind->number;
        for (int field = 0; field < kind->count; field++)
            put_absent(&kind->fields[field], kind->empty);
    }
    PyObject *type = PyType_FromModuleAndSpec(module, &SPEC, NULL);
    if (type == NULL)
        return -1;
    int failed = PyModule_AddObjectRef(module, "Writer", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot MODULE_SLOTS[] = {
    {Py_mod_exec, fill_module},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kvtrail_agent._ring",
    .m_doc = "The writer of the ring in C.",
    .m_slots = MODULE_SLOTS,
};

PyMODINIT_FUNC PyInit__ring(void)
{
    return PyModuleDef_Init(&MODULE);
}
