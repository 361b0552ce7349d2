/* Whole numbers read where they lie: what a call of the interpreter costs is most of what an emit costs.
 *
 * The limited API has no way to look into an `int`, so this file knows the two forms that CPython has had since 3.11: behind
 * the object's head a word (the number of digits; from 3.12 on that number above three bits of sign and flags) and digits of
 * 30 bits. `learn_digits` sees at import which form reads a list of numbers rightly, and trusts neither where none does: then
 * every number goes the way of the API. Reads at most three digits, and only of numbers that say they have them. */
#ifndef KVTRAIL_RING_DIGITS_H
#define KVTRAIL_RING_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define INLINE inline __attribute__((always_inline))
#define SLOW __attribute__((noinline))
#define DIGIT_BITS 30

typedef struct {
    PyObject head;
    size_t word;
    uint32_t digits[3];
} Digits;

typedef enum {
    NO_FORM,
    SIZED,  /* 3.11: the word is the number of digits, negative where the number is */
    TAGGED, /* from 3.12 on: the number of digits above a flag and two bits for the sign, of which the upper says minus */
} DigitForm;

static DigitForm digit_form; /* written once, at import */

/* The number, if it is a plain `int` from 0 to 2^64 - 1; 0 where it is not, or its form is not known. Any object may be asked. */
static INLINE int read_digits(DigitForm form, PyObject *value, uint64_t *number)
{
    if (form == NO_FORM || !LIKELY(Py_IS_TYPE(value, &PyLong_Type)))
        return 0;
    const Digits *found = (const Digits *)(const void *)value;
    size_t count = form == TAGGED ? found->word >> 3 : found->word;
    if (form == TAGGED && (found->word & 2))
        return 0;
    if (count == 1)
        *number = found->digits[0];
    else if (count == 0)
        *number = 0;
    else if (count == 2)
        *number = found->digits[0] | (uint64_t)found->digits[1] << DIGIT_BITS;
    else if (count == 3 && found->digits[2] < 16)
        *number = found->digits[0] | (uint64_t)found->digits[1] << DIGIT_BITS | (uint64_t)found->digits[2] << (2 * DIGIT_BITS);
    else
        return 0; /* negative or too large: the API says which */
    return 1;
}

/* Whether a form reads one number as the API does; or -1 with an error. */
static int reads_rightly(DigitForm form, uint64_t number, int is_positive)
{
    PyObject *value = is_positive ? PyLong_FromUnsignedLongLong(number) : PyLong_FromLongLong(-(long long)number);
    uint64_t found = 0;
    if (value == NULL)
        return -1;
    int is_read = read_digits(form, value, &found);
    Py_DECREF(value);
    return is_positive || !number ? is_read && found == number : !is_read;
}

/* Whether a form reads all of the probes: around every border between numbers of digits, and of either sign. */
static int form_is_right(DigitForm form)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t power = UINT64_C(1) << bit, probes[] = {power - 1, power, power + 1, power | 0x123456789ABCDEFu >> (63 - bit)};
        for (unsigned probe = 0; probe < 4; probe++)
            for (int is_positive = probes[probe] >> 62 != 0; is_positive < 2; is_positive++)
                if (reads_rightly(form, probes[probe], is_positive) != 1)
                    return 0;
    }
    return 1;
}

/* Find the form of numbers in this interpreter. Not for debugging builds, whose objects have a longer head. */
static void learn_digits(void)
{
    digit_form = form_is_right(SIZED) ? SIZED : form_is_right(TAGGED) ? TAGGED : NO_FORM;
    PyErr_Clear();
}

#endif
