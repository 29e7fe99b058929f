// SPDX-License-Identifier: Apache-2.0
/* dtoa_slow.c — see dtoa_slow.h. Reading makes a guess and compares the decimal with the middle
 * between two doubles, both as whole numbers. It goes on to the neighbour while that is nearer. */
#include "base/dtoa_slow.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"

#define LIMBS      128u /* of 32 bits; DIGITS_MAX digits and the smallest double need 3800 bits */
#define DIGITS_MAX 800  /* no middle of two doubles has more */
#define INFINITE   (0x7ffull << 52)

struct big {
    unsigned len; /* limbs in use; the last of them is not 0 */
    uint32_t v[LIMBS];
};

static void slow_multiply(struct big *b, uint32_t by, uint32_t add)
{
    uint64_t carry = add;

    for (unsigned i = 0; i < b->len; i++) {
        carry += (uint64_t)b->v[i] * by;
        b->v[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        b->v[b->len++] = (uint32_t)carry;
}

static void multiply_pow5(struct big *b, int n)
{
    for (; n >= 13; n -= 13)
        slow_multiply(b, 1220703125, 0); /* 5^13 */
    for (; n > 0; n--)
        slow_multiply(b, 5, 0);
}

static void double_times(struct big *b, int n)
{
    for (; n >= 31; n -= 31)
        slow_multiply(b, 1u << 31, 0);
    slow_multiply(b, 1u << (n > 0 ? n : 0), 0);
}

static int slow_compare(const struct big *a, const struct big *b)
{
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    for (unsigned i = a->len; i--;)
        if (a->v[i] != b->v[i])
            return a->v[i] < b->v[i] ? -1 : 1;
    return 0;
}

/* a is not the smaller one. */
static void slow_subtract(struct big *a, const struct big *b)
{
    int64_t borrow = 0;

    for (unsigned i = 0; i < a->len; i++) {
        borrow += (int64_t)a->v[i] - (i < b->len ? b->v[i] : 0);
        a->v[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->len && !a->v[a->len - 1])
        a->len--;
}

/* Bit after bit of 5^n, or of its reciprocal; what is left then rounds up. */
void dtoa_slow_power(int exp10, uint64_t ret_high_low[2])
{
    struct big n = {1, {1}}, d = {1, {1}};
    uint64_t high = 0, low = 0;

    multiply_pow5(exp10 < 0 ? &d : &n, exp10 < 0 ? -exp10 : exp10);
    while (slow_compare(&n, &d) >= 0)
        slow_multiply(&d, 2, 0);
    while (!(high >> 63)) {
        slow_multiply(&n, 2, 0);
        bool one = slow_compare(&n, &d) >= 0;
        if (one)
            slow_subtract(&n, &d);
        high = high << 1 | low >> 63;
        low = low << 1 | one;
    }
    if (n.len && ++low == 0)
        high++;
    ret_high_low[0] = high;
    ret_high_low[1] = low;
}

/* --- reading --- */

struct number {
    struct big digits;
    int exp10;
    uint64_t first; /* digits, with an exponent of their own */
    int first_exp10;
};

static uint64_t mantissa_of(uint64_t bits, int *ret_exp2)
{
    int exp = (int)(bits >> 52);
    uint64_t m = bits & ((1ull << 52) - 1);

    *ret_exp2 = (exp ? exp : 1) - 1075;
    return exp ? m | 1ull << 52 : m;
}

/* With the middle between the double of these bits and the next larger one. */
static int compare_middle(const struct number *n, uint64_t bits)
{
    struct big a = n->digits, b;
    int exp2;
    uint64_t m = 2 * mantissa_of(bits, &exp2) + 1;
    int twos = n->exp10 - (exp2 - 1);

    b.v[0] = (uint32_t)m;
    b.v[1] = (uint32_t)(m >> 32);
    b.len = b.v[1] ? 2 : 1;
    multiply_pow5(n->exp10 < 0 ? &b : &a, n->exp10 < 0 ? -n->exp10 : n->exp10);
    double_times(twos < 0 ? &b : &a, twos < 0 ? -twos : twos);
    return slow_compare(&a, &b);
}

static uint64_t slow_guess(const struct number *n)
{
    long double v = (long double)n->first;
    uint64_t bits;

    for (int i = n->first_exp10; i > 0; i--)
        v *= 10;
    for (int i = n->first_exp10; i < 0; i++)
        v /= 10;
    double d = (double)v;
    memcpy(&bits, &d, sizeof bits);
    return bits < INFINITE ? bits : INFINITE - 1;
}

static uint64_t slow_nearest(const struct number *n)
{
    uint64_t bits = slow_guess(n);

    for (int order; bits < INFINITE; bits++) {
        order = compare_middle(n, bits);
        if (order < 0 || (order == 0 && !(bits & 1)))
            break;
    }
    for (int order; bits; bits--) {
        order = compare_middle(n, bits - 1);
        if (order > 0 || (order == 0 && !(bits & 1)))
            break;
    }
    return bits;
}

static int read_exponent(const char **at)
{
    const char *p = *at + 1;
    int exp = 0;

    if ((**at | 0x20) != 'e')
        return 0;
    bool minus = *p == '-';
    p += *p == '-' || *p == '+';
    if (!str_is_digit(*p))
        return 0;
    for (; str_is_digit(*p); p++)
        exp = exp < 100000 ? exp * 10 + (*p - '0') : exp;
    *at = p;
    return minus ? -exp : exp;
}

/* False when there is no digit. */
static bool read_digits(const char **at, struct number *n, int *ret_count)
{
    const char *p = *at;
    bool point = false, any = false;
    int count = 0; /* of digits that are kept */

    for (; str_is_digit(*p) || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        any = true;
        n->exp10 -= point;
        if (count == DIGITS_MAX) { /* what is lost is below every middle: only that it was there */
            n->exp10++;
            n->digits.v[0] |= *p != '0';
            continue;
        }
        count += count || *p != '0';
        slow_multiply(&n->digits, 10, (uint32_t)(*p - '0'));
        if (count <= 19)
            n->first = n->first * 10 + (uint64_t)(*p - '0');
        else
            n->first_exp10++;
    }
    *at = p;
    *ret_count = count;
    return any;
}

double dtoa_slow_read(const char *text, char **ret_end)
{
    struct number n = {0};
    const char *at = text + (*text == '-' || *text == '+');
    int count;
    uint64_t bits = 0;
    double d;

    bool good = read_digits(&at, &n, &count);
    if (good)
        n.exp10 += read_exponent(&at);
    n.first_exp10 += n.exp10;
    if (count && count + n.exp10 > 310)
        bits = INFINITE;
    else if (count && count + n.exp10 > -330)
        bits = slow_nearest(&n);
    bits |= (uint64_t)(good && *text == '-') << 63;
    memcpy(&d, &bits, sizeof d);
    if (ret_end)
        *ret_end = (char *)(good ? at : text);
    return d;
}
