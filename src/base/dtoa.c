// SPDX-License-Identifier: Apache-2.0
/* dtoa.c — shortest digits after Giulietti's Schubfach, reading after Clinger, Eisel and Lemire.
 *
 * Schubfach scales the value and both its rounding boundaries by one power of ten, so that the
 * shortest decimal is one of four candidates. No loop over digits, no big integers. */
#include "base/dtoa.h"

#include <string.h>

#define MANTISSA_BITS 52
#define EXPONENT_BIAS 1075 /* of the mantissa read as an integer */

__extension__ typedef unsigned __int128 u128;

static int floor_log10_pow2(int e) /* |e| <= 1500 */
{
    return (e * 1262611) >> 22;
}

static int floor_log10_3_4_pow2(int e)
{
    return (e * 1262611 - 524031) >> 22;
}

static int floor_log2_pow10(int e) /* |e| <= 1233 */
{
    return (e * 1741647) >> 19;
}

/* The upper 64 bits of g * c; the last bit tells whether anything was lost below it. */
static uint64_t multiply_to_odd(const uint64_t g[2], uint64_t c)
{
    u128 low = (u128)g[1] * c;
    u128 high = (u128)g[0] * c + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static struct decimal without_zeros(uint64_t digits, int exp10)
{
    while (digits % 10 == 0) {
        digits /= 10;
        exp10++;
    }
    return (struct decimal){digits, exp10};
}

/* The value is c * 2^q; near_below: the next smaller double is only half as far as the next
 * larger one. */
static struct decimal dtoa_find_shortest(uint64_t c, int q, bool near_below)
{
    int k = near_below ? floor_log10_3_4_pow2(q) : floor_log10_pow2(q);
    int shift = q + floor_log2_pow10(-k) + 1;
    uint64_t g[2];
    dtoa_power(-k, g);
    uint64_t odd = c & 1; /* an even mantissa owns its boundaries */
    uint64_t low = multiply_to_odd(g, (4 * c - 2 + near_below) << shift) + odd;
    uint64_t value = multiply_to_odd(g, (4 * c) << shift);
    uint64_t high = multiply_to_odd(g, (4 * c + 2) << shift) - odd;
    uint64_t s = value / 4;

    if (s >= 10) {
        uint64_t tens = s / 10;
        bool below = low <= 40 * tens, above = 40 * tens + 40 <= high;
        if (below != above)
            return without_zeros(tens + above, k + 1);
    }
    bool below = low <= 4 * s, above = 4 * s + 4 <= high;
    if (below != above)
        return without_zeros(s + above, k);
    uint64_t middle = 4 * s + 2;
    bool up = value > middle || (value == middle && (s & 1));
    return without_zeros(s + up, k);
}

struct decimal dtoa_shortest(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    uint64_t mantissa = bits & (((uint64_t)1 << MANTISSA_BITS) - 1);
    int exponent = (int)(bits >> MANTISSA_BITS) & 0x7ff;

    if (exponent == 0)
        return dtoa_find_shortest(mantissa, 1 - EXPONENT_BIAS, false);
    uint64_t c = mantissa | ((uint64_t)1 << MANTISSA_BITS);
    int q = exponent - EXPONENT_BIAS;
    if (q <= 0 && q > -53 && (c & (((uint64_t)1 << -q) - 1)) == 0)
        return without_zeros(c >> -q, 0);
    return dtoa_find_shortest(c, q, mantissa == 0 && exponent > 1);
}

/* Both factors are doubles themselves, so one rounding is all there is. */
static bool nearest_exact(uint64_t digits, int exp10, double *ret_value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    if (digits > (uint64_t)1 << 53 || exp10 < -22 || exp10 > 22)
        return false;
    *ret_value = exp10 < 0 ? (double)digits / powers[-exp10] : (double)digits * powers[exp10];
    return true;
}

static u128 pow10_rounded_down(int exp10)
{
    uint64_t g[2];

    dtoa_power(exp10, g);
    return ((u128)g[0] << 64 | g[1]) - (exp10 < 0 || exp10 > 55);
}

bool dtoa_nearest(uint64_t digits, int64_t exp10, double *ret_value)
{
    if (digits == 0) {
        *ret_value = 0;
        return true;
    }
    if (exp10 < DTOA_POW10_MIN || exp10 > DTOA_POW10_MAX)
        return false;
    int e = (int)exp10;
    if (nearest_exact(digits, e, ret_value))
        return true;

    u128 power = pow10_rounded_down(e);
    int lead = __builtin_clzll(digits);
    uint64_t m = digits << lead;
    u128 product = (u128)m * (uint64_t)(power >> 64);
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if ((high & 0x1ff) == 0x1ff && low + m < low) { /* the lower half of the power may carry in */
        u128 rest = (u128)m * (uint64_t)power;
        product += (uint64_t)(rest >> 64);
        high = (uint64_t)(product >> 64), low = (uint64_t)product;
        if ((high & 0x1ff) == 0x1ff && low == UINT64_MAX && (uint64_t)rest + m < m)
            return false;
    }
    unsigned top = (unsigned)(high >> 63);
    uint64_t mantissa = high >> (top + 9); /* 54 bits: one more than is kept */
    if (low == 0 && (high & 0x1ff) == 0 && (mantissa & 3) == 1)
        return false; /* a tie, perhaps */
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    int exponent = ((217706 * e) >> 16) + 64 + 1023 - lead - !top;
    if (mantissa >> 53) {
        mantissa >>= 1;
        exponent++;
    }
    if (exponent >= 0x7ff) /* too small cannot be: the table ends at 10^-292 */
        return false;
    uint64_t bits =
        (uint64_t)exponent << MANTISSA_BITS | (mantissa & (((uint64_t)1 << MANTISSA_BITS) - 1));
    memcpy(ret_value, &bits, sizeof bits);
    return true;
}
