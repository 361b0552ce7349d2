/* From Python's values to the bytes of a record: what `struct.pack_into` would take, and nothing else.
 *
 * A converter returns 0, or -1 with Python's error set. May run Python code only for values that are neither numbers nor
 * texts themselves (`__index__`, `__float__`). */
#ifndef KVTRAIL_RING_CONVERT_H
#define KVTRAIL_RING_CONVERT_H

#include <time.h>

#include "_ring_digits.h"
#include "_ring_write.h"

typedef struct {
    unsigned char bytes[RECORD_BYTES] __attribute__((aligned(8)));
    const char *text; /* of the caller's object; NULL where there is none */
    size_t text_length;
    unsigned char text_offset;
    unsigned char has_time;
} Record;

static int refuse_range(void)
{
    PyErr_SetString(PyExc_OverflowError, "number does not fit its field");
    return -1;
}

/* Members of enums and bools come again and again: each is asked for its number once, as long as there is a place for it.
 * Nothing is remembered where several threads may write at once. */
static SLOW int read_member(Writer *self, PyObject *value, uint64_t *number)
{
#ifdef Py_GIL_DISABLED
    (void)self, (void)value, (void)number;
    return 0;
#else
    Known *known = &self->known[((uintptr_t)value >> 5) % KNOWN_MEMBERS];
    if (known->member == NULL && (PyType_GetFlags(Py_TYPE(value)) & Py_TPFLAGS_LONG_SUBCLASS)) {
        known->number = PyLong_AsUnsignedLongLong(value);
        if (known->number == UINT64_MAX && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        known->member = Py_NewRef(value);
    }
    *number = known->number;
    return known->member == value;
#endif
}

static INLINE int read_whole(Writer *self, DigitForm form, PyObject *value, uint64_t *number)
{
    return read_digits(form, value, number) || (!Py_IS_TYPE(value, &PyLong_Type) && read_member(self, value, number));
}

/* Numbers from 2^63 on, and what is a number by `__index__` alone. */
static int to_wide_u64(PyObject *value, uint64_t *number)
{
    PyObject *whole = PyNumber_Index(value);
    if (whole == NULL)
        return -1;
    *number = PyLong_AsUnsignedLongLong(whole);
    Py_DECREF(whole);
    return *number == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

/* The signed conversion first: it is the one that the limited API has a fast way for. */
static SLOW int to_u64_slowly(PyObject *value, uint64_t *number)
{
    int overflow;
    long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
    *number = (uint64_t)found;
    if (LIKELY(found >= 0))
        return 0;
    if (overflow > 0)
        return to_wide_u64(value, number);
    return PyErr_Occurred() ? -1 : refuse_range();
}

static SLOW int to_i64_slowly(PyObject *value, int64_t *number)
{
    *number = PyLong_AsLongLong(value);
    return *number == -1 && PyErr_Occurred() ? -1 : 0;
}

static SLOW int to_range_slowly(PyObject *value, long low, long high, long *number)
{
    *number = PyLong_AsLong(value);
    if (*number == -1 && PyErr_Occurred())
        return -1;
    return *number < low || *number > high ? refuse_range() : 0;
}

static INLINE int to_u64(Writer *self, DigitForm form, PyObject *value, uint64_t *number)
{
    return LIKELY(read_whole(self, form, value, number)) ? 0 : to_u64_slowly(value, number);
}

static INLINE int to_i64(Writer *self, DigitForm form, PyObject *value, int64_t *number)
{
    uint64_t plain;
    if (LIKELY(read_whole(self, form, value, &plain) && plain <= INT64_MAX)) {
        *number = (int64_t)plain;
        return 0;
    }
    return to_i64_slowly(value, number);
}

static INLINE int to_range(Writer *self, DigitForm form, PyObject *value, long low, long high, long *number)
{
    uint64_t plain;
    if (LIKELY(read_whole(self, form, value, &plain) && plain <= (uint64_t)high)) {
        *number = (long)plain;
        return 0;
    }
    return to_range_slowly(value, low, high, number);
}

static int digit(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    character |= 0x20;
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* A trace id of 32 plain digits; 0 where it is not one. */
static int put_plain_trace(PyObject *value, unsigned char *at)
{
    Py_ssize_t length;
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &length) : NULL;
    if (text != NULL && length == 0)
        return 1;
    if (text == NULL || length != 32) {
        PyErr_Clear();
        return 0;
    }
    for (int number = 0; number < 16; number++) {
        int high = digit(text[2 * number]), low = digit(text[2 * number + 1]);
        if (high < 0 || low < 0)
            return 0;
        at[number] = (unsigned char)(high << 4 | low);
    }
    return 1;
}

static int put_trace(Writer *self, PyObject *value, unsigned char *at)
{
    if (put_plain_trace(value, at))
        return 0;
    PyObject *raw = PyObject_CallFunctionObjArgs(self->trace_bytes, value, NULL);
    char *bytes;
    Py_ssize_t length;
    if (raw == NULL || PyBytes_AsStringAndSize(raw, &bytes, &length) < 0 || length != 16) {
        Py_XDECREF(raw);
        return PyErr_Occurred() ? -1 : refuse_range();
    }
    memcpy(at, bytes, 16);
    Py_DECREF(raw);
    return 0;
}

/* Remember a text; it is copied when its seq is drawn. Anything false is none. */
static int put_text_later(PyObject *value, int offset, Record *record)
{
    Py_ssize_t length = 0;
    record->text_offset = (unsigned char)offset;
    if (!PyUnicode_Check(value)) {
        int is_true = PyObject_IsTrue(value);
        if (is_true > 0)
            PyErr_SetString(PyExc_TypeError, "no text");
        return is_true ? -1 : 0;
    }
    record->text = PyUnicode_AsUTF8AndSize(value, &length);
    record->text_length = (size_t)length;
    return record->text == NULL ? -1 : 0;
}

static INLINE int put_time(Writer *self, DigitForm form, PyObject *value, Record *record)
{
    int64_t t_ns;
    if (value == self->no_time)
        return 0;
    if (to_i64(self, form, value, &t_ns) < 0)
        return -1;
    memcpy(record->bytes, &t_ns, 8);
    record->has_time = 1;
    return 0;
}

#define PUT(Type, NUMBER)                  \
    do {                                   \
        Type plain = (Type)(NUMBER);       \
        memcpy(at, &plain, sizeof(plain)); \
        return 0;                          \
    } while (0)

static INLINE int put_U64(Writer *self, DigitForm form, PyObject *value, unsigned char *at)
{
    uint64_t number;
    if (to_u64(self, form, value, &number) < 0)
        return -1;
    PUT(uint64_t, number);
}

static INLINE int put_I64(Writer *self, DigitForm form, PyObject *value, unsigned char *at)
{
    int64_t number;
    if (to_i64(self, form, value, &number) < 0)
        return -1;
    PUT(int64_t, number);
}

#define PUT_NARROW(WIDTH, Type, LOW, HIGH)                            \
    static INLINE int put_##WIDTH(Writer *self, DigitForm form, PyObject *value, unsigned char *at) \
    {                                                                 \
        long number;                                                  \
        if (to_range(self, form, value, LOW, HIGH, &number) < 0)                  \
            return -1;                                                \
        PUT(Type, number);                                            \
    }
PUT_NARROW(U32, uint32_t, 0, UINT32_MAX)
PUT_NARROW(U16, uint16_t, 0, UINT16_MAX)
PUT_NARROW(I16, int16_t, INT16_MIN, INT16_MAX)
PUT_NARROW(U8, uint8_t, 0, UINT8_MAX)
PUT_NARROW(BOOL, uint8_t, 0, UINT8_MAX)

static INLINE int put_F64(Writer *self, DigitForm form, PyObject *value, unsigned char *at)
{
    (void)self, (void)form;
    double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred())
        return -1;
    PUT(double, number);
}

/* One field, its width known when this is compiled or, for arguments by name, only when it runs. */
static INLINE int
put_value(Writer *self, DigitForm form, int width, int offset, PyObject *value, Record *record)
{
    unsigned char *at = record->bytes + offset;
    switch (width) {
    case WIDTH_U64: return put_U64(self, form, value, at);
    case WIDTH_U32: return put_U32(self, form, value, at);
    case WIDTH_U16: return put_U16(self, form, value, at);
    case WIDTH_I16: return put_I16(self, form, value, at);
    case WIDTH_U8: return put_U8(self, form, value, at);
    case WIDTH_BOOL: return put_BOOL(self, form, value, at);
    case WIDTH_I64: return put_I64(self, form, value, at);
    case WIDTH_F64: return put_F64(self, form, value, at);
    case WIDTH_TIME: return put_time(self, form, value, record);
    case WIDTH_TRACE: return put_trace(self, value, at);
    default: return put_text_later(value, offset, record);
    }
}

/* The absent value of a field, as it stands in a record that was given none. */
static void put_absent(const Field *field, unsigned char *record)
{
    unsigned char *at = record + field->offset;
    static const double no_number = __builtin_nan("");
    switch (field->width) {
    case WIDTH_U64: memset(at, 0xFF, 8); break;
    case WIDTH_U32: memset(at, 0xFF, 4); break;
    case WIDTH_U16: memset(at, 0xFF, 2); break;
    case WIDTH_U8:
    case WIDTH_BOOL: *at = 0xFF; break;
    case WIDTH_I16: memcpy(at, &(int16_t){INT16_MIN}, 2); break;
    case WIDTH_I64: memcpy(at, &(int64_t){INT64_MIN}, 8); break;
    case WIDTH_F64: memcpy(at, &no_number, 8); break;
    default: break; /* texts and trace ids are absent when they are zero */
    }
}

/* Take the time where the caller gave none. */
static inline int stamp(Writer *self, Record *record)
{
    int64_t t_ns;
    if (self->now == NULL) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        t_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    } else {
        PyObject *number = PyObject_CallNoArgs(self->now);
        int failed = number == NULL || to_i64(self, digit_form, number, &t_ns) < 0;
        Py_XDECREF(number);
        if (failed)
            return -1;
    }
    memcpy(record->bytes, &t_ns, 8);
    return 0;
}

#endif
