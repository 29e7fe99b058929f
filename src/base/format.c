// SPDX-License-Identifier: Apache-2.0
/* format.c — see format.h. A double is a whole number of 53 bits, shifted. Its digits are worked
 * out in a long number, for any double, without rounding on the way. */
#include "base/format.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define NUMBER_MAX 24 /* digits of 2^64 in octal, and some */
#define LIMBS      36 /* of 32 bits: the largest double, and 10 times the smallest */
#define WHOLE_MAX  309
#define PLACES_MAX 40

struct sink {
    char *p;
    size_t size, len;
};

struct spec {
    bool left, zero, negative;
    int width, precision; /* precision -1: none */
    int bytes;            /* of the argument */
};

static void format_put(struct sink *s, const char *p, size_t n)
{
    if (s->len < s->size)
        memcpy(s->p + s->len, p, n < s->size - s->len ? n : s->size - s->len);
    s->len += n;
}

static void put_times(struct sink *s, char c, int n)
{
    for (; n > 0; n--)
        format_put(s, &c, 1);
}

/* Sign, zeros and text in a field. */
static void put_field(struct sink *s, const struct spec *f, const char *p, size_t n, int zeros)
{
    int len = (int)n + f->negative + zeros, gap = f->width > len ? f->width - len : 0;

    if (f->zero && !f->left)
        zeros += gap, gap = 0;
    put_times(s, ' ', f->left ? 0 : gap);
    put_times(s, '-', f->negative);
    put_times(s, '0', zeros);
    format_put(s, p, n);
    put_times(s, ' ', f->left ? gap : 0);
}

static void put_number(struct sink *s, struct spec *f, uint64_t n, unsigned base, char letters)
{
    char digits[NUMBER_MAX], *p = digits + sizeof digits;

    for (; n; n /= base) {
        unsigned d = (unsigned)(n % base);
        *--p = (char)(d < 10 ? '0' + d : letters + d - 10);
    }
    int len = (int)(digits + sizeof digits - p), want = f->precision < 0 ? 1 : f->precision;
    f->zero &= f->precision < 0;
    put_field(s, f, p, (size_t)len, want > len ? want - len : 0);
}

/* --- doubles --- */

/* v times by; gives what did not fit. */
static uint32_t format_multiply(uint32_t v[LIMBS], uint32_t by)
{
    uint64_t carry = 0;

    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)v[i] * by;
        v[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return (uint32_t)carry;
}

static uint32_t format_divide(uint32_t v[LIMBS], uint32_t by)
{
    uint64_t rest = 0;

    for (int i = LIMBS - 1; i >= 0; i--) {
        rest = rest << 32 | v[i];
        v[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    return (uint32_t)rest;
}

static bool is_zero(const uint32_t v[LIMBS])
{
    uint32_t all = 0;

    for (int i = 0; i < LIMBS; i++)
        all |= v[i];
    return all == 0;
}

/* n * 2^shift; what is below 2^0 falls off. */
static void set_limbs(uint32_t v[LIMBS], uint64_t n, int shift)
{
    memset(v, 0, LIMBS * sizeof *v);
    if (shift < 0)
        n = shift > -64 ? n >> -shift : 0, shift = 0;
    for (int bit = 0; bit < 64; bit++)
        if (n >> bit & 1)
            v[(bit + shift) / 32] |= 1u << ((bit + shift) % 32);
}

/* Adds one to the last of the digits; true if all of them were nines. */
static bool count_up(char *p, size_t n)
{
    while (n--) {
        if (p[n] != '9') {
            p[n]++;
            return false;
        }
        p[n] = '0';
    }
    return true;
}

/* A fraction of LIMBS * 32 bits: more than a half, or a half behind an odd digit. */
static bool rounds_up(uint32_t v[LIMBS], char last)
{
    if (!format_multiply(v, 2))
        return false;
    return !is_zero(v) || (last & 1);
}

static void put_double(struct sink *s, struct spec *f, double d)
{
    char text[1 + WHOLE_MAX + PLACES_MAX + 1], *point = text + 1 + WHOLE_MAX, *p = point;
    uint32_t v[LIMBS];
    uint64_t bits;
    size_t places = f->precision < 0 ? 6 : (size_t)f->precision;

    memcpy(&bits, &d, sizeof bits);
    f->negative = bits >> 63;
    int exp = (int)(bits >> 52 & 2047);
    uint64_t n = bits & ((1ull << 52) - 1);
    if (exp == 2047) {
        f->zero = false;
        put_field(s, f, n ? "nan" : "inf", 3, 0);
        return;
    }
    n |= exp ? 1ull << 52 : 0;
    exp = (exp ? exp : 1) - 1075; /* the value is n * 2^exp */
    set_limbs(v, n, exp);
    do
        *--p = (char)('0' + format_divide(v, 10));
    while (!is_zero(v));
    if (exp > -64)
        n = exp < 0 ? n & ((1ull << -exp) - 1) : 0;
    set_limbs(v, n, n ? LIMBS * 32 + exp : 0);
    places = places < PLACES_MAX ? places : PLACES_MAX;
    for (size_t i = 0; i < places; i++)
        point[i] = (char)('0' + format_multiply(v, 10));
    size_t len = (size_t)(point - p) + places;
    if (rounds_up(v, p[len - 1]) && count_up(p, len)) {
        *--p = '1';
        len++;
    }
    if (places) {
        memmove(point + 1, point, places);
        *point = '.';
        len++;
    }
    put_field(s, f, p, len, 0);
}

/* --- conversions --- */

static uint64_t take_unsigned(const struct spec *f, va_list *ap)
{
    if (f->bytes > 4)
        return va_arg(*ap, uint64_t);
    uint32_t n = va_arg(*ap, uint32_t);
    return f->bytes == 4 ? n : n & ((1u << 8 * f->bytes) - 1);
}

static uint64_t take_signed(struct spec *f, va_list *ap)
{
    unsigned shift = 64 - 8 * (unsigned)f->bytes;
    int64_t n = (int64_t)(take_unsigned(f, ap) << shift) >> shift;

    f->negative = n < 0;
    return n < 0 ? -(uint64_t)n : (uint64_t)n;
}

static int take_int(const char **at, va_list *ap)
{
    int n = 0;

    if (**at == '*') {
        ++*at;
        return va_arg(*ap, int);
    }
    for (; **at >= '0' && **at <= '9'; ++*at)
        n = n * 10 + (**at - '0');
    return n;
}

static const char *read_spec(const char *at, struct spec *f, va_list *ap)
{
    *f = (struct spec){.precision = -1, .bytes = sizeof(int)};
    for (; *at == '-' || *at == '0'; at++)
        *(*at == '-' ? &f->left : &f->zero) = true;
    f->width = take_int(&at, ap);
    if (f->width < 0)
        f->left = true, f->width = -f->width;
    if (*at == '.') {
        at++;
        f->precision = take_int(&at, ap);
    }
    for (; *at == 'h'; at++)
        f->bytes /= 2;
    for (; *at == 'l' || *at == 'z' || *at == 'j' || *at == 't'; at++)
        f->bytes = 8;
    return at;
}

static void put_string(struct sink *s, struct spec *f, const char *p)
{
    if (!p)
        p = "(null)";
    f->zero = false;
    put_field(s, f, p, f->precision < 0 ? strlen(p) : strnlen(p, (size_t)f->precision), 0);
}

static void put_one(struct sink *s, struct spec *f, char kind, va_list *ap)
{
    char c = '%';

    switch (kind) {
    case 'd':
    case 'i':
        return put_number(s, f, take_signed(f, ap), 10, 'a');
    case 'u':
        return put_number(s, f, take_unsigned(f, ap), 10, 'a');
    case 'o':
        return put_number(s, f, take_unsigned(f, ap), 8, 'a');
    case 'x':
        return put_number(s, f, take_unsigned(f, ap), 16, 'a');
    case 'X':
        return put_number(s, f, take_unsigned(f, ap), 16, 'A');
    case 'p':
        format_put(s, "0x", 2);
        return put_number(s, f, (uintptr_t)va_arg(*ap, void *), 16, 'a');
    case 's':
        return put_string(s, f, va_arg(*ap, const char *));
    case 'f':
        return put_double(s, f, va_arg(*ap, double));
    case 'c':
        c = (char)va_arg(*ap, int);
    }
    f->zero = false;
    put_field(s, f, &c, 1, 0);
}

int format_text(char *out, size_t size, const char *fmt, va_list ap)
{
    struct sink s = {out, size ? size - 1 : 0, 0};
    struct spec f;
    va_list args;

    va_copy(args, ap); /* a va_list that is a parameter has no address of its own type */
    while (*fmt) {
        size_t n = strcspn(fmt, "%");
        format_put(&s, fmt, n);
        fmt += n;
        if (!*fmt)
            break;
        fmt = read_spec(fmt + 1, &f, &args);
        put_one(&s, &f, *fmt, &args);
        fmt += *fmt != '\0';
    }
    va_end(args);
    if (size)
        out[s.len < size ? s.len : size - 1] = '\0';
    return (int)s.len;
}
