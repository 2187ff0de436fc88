/* Decimal numbers in text -> the nearest double, ties to even, whatever the locale: what Python's float() gives.
 *
 * Bytes are looked at one after the other up to the first that cannot go on the number. */
#ifndef TK_DECIMAL_H
#define TK_DECIMAL_H

#include <stdint.h>
#include <string.h>

typedef unsigned char byte;

static inline int is_digit(byte c)
{
    return (byte)(c - '0') < 10;
}

enum { MIN_POWER = -128, MAX_POWER = 64, EXACT_POWER = 27 };

/* The first 64 bits of 10^q: 10^q = (powers[q - MIN_POWER] + f) 2^b, 0 <= f < 1, with b such that the highest bit is 1.
 * f = 0 when 0 <= q <= EXACT_POWER, and only then. */
static const uint64_t powers[MAX_POWER - MIN_POWER + 1] = {
    0xddd0467c64bce4a0, 0x8aa22c0dbef60ee4, 0xad4ab7112eb3929d, 0xd89d64d57a607744, 0x87625f056c7c4a8b,
    0xa93af6c6c79b5d2d, 0xd389b47879823479, 0x843610cb4bf160cb, 0xa54394fe1eedb8fe, 0xce947a3da6a9273e,
    0x811ccc668829b887, 0xa163ff802a3426a8, 0xc9bcff6034c13052, 0xfc2c3f3841f17c67, 0x9d9ba7832936edc0,
    0xc5029163f384a931, 0xf64335bcf065d37d, 0x99ea0196163fa42e, 0xc06481fb9bcf8d39, 0xf07da27a82c37088,
    0x964e858c91ba2655, 0xbbe226efb628afea, 0xeadab0aba3b2dbe5, 0x92c8ae6b464fc96f, 0xb77ada0617e3bbcb,
    0xe55990879ddcaabd, 0x8f57fa54c2a9eab6, 0xb32df8e9f3546564, 0xdff9772470297ebd, 0x8bfbea76c619ef36,
    0xaefae51477a06b03, 0xdab99e59958885c4, 0x88b402f7fd75539b, 0xaae103b5fcd2a881, 0xd59944a37c0752a2,
    0x857fcae62d8493a5, 0xa6dfbd9fb8e5b88e, 0xd097ad07a71f26b2, 0x825ecc24c873782f, 0xa2f67f2dfa90563b,
    0xcbb41ef979346bca, 0xfea126b7d78186bc, 0x9f24b832e6b0f436, 0xc6ede63fa05d3143, 0xf8a95fcf88747d94,
    0x9b69dbe1b548ce7c, 0xc24452da229b021b, 0xf2d56790ab41c2a2, 0x97c560ba6b0919a5, 0xbdb6b8e905cb600f,
    0xed246723473e3813, 0x9436c0760c86e30b, 0xb94470938fa89bce, 0xe7958cb87392c2c2, 0x90bd77f3483bb9b9,
    0xb4ecd5f01a4aa828, 0xe2280b6c20dd5232, 0x8d590723948a535f, 0xb0af48ec79ace837, 0xdcdb1b2798182244,
    0x8a08f0f8bf0f156b, 0xac8b2d36eed2dac5, 0xd7adf884aa879177, 0x86ccbb52ea94baea, 0xa87fea27a539e9a5,
    0xd29fe4b18e88640e, 0x83a3eeeef9153e89, 0xa48ceaaab75a8e2b, 0xcdb02555653131b6, 0x808e17555f3ebf11,
    0xa0b19d2ab70e6ed6, 0xc8de047564d20a8b, 0xfb158592be068d2e, 0x9ced737bb6c4183d, 0xc428d05aa4751e4c,
    0xf53304714d9265df, 0x993fe2c6d07b7fab, 0xbf8fdb78849a5f96, 0xef73d256a5c0f77c, 0x95a8637627989aad,
    0xbb127c53b17ec159, 0xe9d71b689dde71af, 0x9226712162ab070d, 0xb6b00d69bb55c8d1, 0xe45c10c42a2b3b05,
    0x8eb98a7a9a5b04e3, 0xb267ed1940f1c61c, 0xdf01e85f912e37a3, 0x8b61313bbabce2c6, 0xae397d8aa96c1b77,
    0xd9c7dced53c72255, 0x881cea14545c7575, 0xaa242499697392d2, 0xd4ad2dbfc3d07787, 0x84ec3c97da624ab4,
    0xa6274bbdd0fadd61, 0xcfb11ead453994ba, 0x81ceb32c4b43fcf4, 0xa2425ff75e14fc31, 0xcad2f7f5359a3b3e,
    0xfd87b5f28300ca0d, 0x9e74d1b791e07e48, 0xc612062576589dda, 0xf79687aed3eec551, 0x9abe14cd44753b52,
    0xc16d9a0095928a27, 0xf1c90080baf72cb1, 0x971da05074da7bee, 0xbce5086492111aea, 0xec1e4a7db69561a5,
    0x9392ee8e921d5d07, 0xb877aa3236a4b449, 0xe69594bec44de15b, 0x901d7cf73ab0acd9, 0xb424dc35095cd80f,
    0xe12e13424bb40e13, 0x8cbccc096f5088cb, 0xafebff0bcb24aafe, 0xdbe6fecebdedd5be, 0x89705f4136b4a597,
    0xabcc77118461cefc, 0xd6bf94d5e57a42bc, 0x8637bd05af6c69b5, 0xa7c5ac471b478423, 0xd1b71758e219652b,
    0x83126e978d4fdf3b, 0xa3d70a3d70a3d70a, 0xcccccccccccccccc, 0x8000000000000000, 0xa000000000000000,
    0xc800000000000000, 0xfa00000000000000, 0x9c40000000000000, 0xc350000000000000, 0xf424000000000000,
    0x9896800000000000, 0xbebc200000000000, 0xee6b280000000000, 0x9502f90000000000, 0xba43b74000000000,
    0xe8d4a51000000000, 0x9184e72a00000000, 0xb5e620f480000000, 0xe35fa931a0000000, 0x8e1bc9bf04000000,
    0xb1a2bc2ec5000000, 0xde0b6b3a76400000, 0x8ac7230489e80000, 0xad78ebc5ac620000, 0xd8d726b7177a8000,
    0x878678326eac9000, 0xa968163f0a57b400, 0xd3c21bcecceda100, 0x84595161401484a0, 0xa56fa5b99019a5c8,
    0xcecb8f27f4200f3a, 0x813f3978f8940984, 0xa18f07d736b90be5, 0xc9f2c9cd04674ede, 0xfc6f7c4045812296,
    0x9dc5ada82b70b59d, 0xc5371912364ce305, 0xf684df56c3e01bc6, 0x9a130b963a6c115c, 0xc097ce7bc90715b3,
    0xf0bdc21abb48db20, 0x96769950b50d88f4, 0xbc143fa4e250eb31, 0xeb194f8e1ae525fd, 0x92efd1b8d0cf37be,
    0xb7abc627050305ad, 0xe596b7b0c643c719, 0x8f7e32ce7bea5c6f, 0xb35dbf821ae4f38b, 0xe0352f62a19e306e,
    0x8c213d9da502de45, 0xaf298d050e4395d6, 0xdaf3f04651d47b4c, 0x88d8762bf324cd0f, 0xab0e93b6efee0053,
    0xd5d238a4abe98068, 0x85a36366eb71f041, 0xa70c3c40a64e6c51, 0xd0cf4b50cfe20765, 0x82818f1281ed449f,
    0xa321f2d7226895c7, 0xcbea6f8ceb02bb39, 0xfee50b7025c36a08, 0x9f4f2726179a2245, 0xc722f0ef9d80aad6,
    0xf8ebad2b84e0d58b, 0x9b934c3b330c8577, 0xc2781f49ffcfa6d5,
};

/* a b = 2^64 * (what comes back) + *low. */
static inline uint64_t multiply(uint64_t a, uint64_t b, uint64_t *low)
{
    const uint64_t mask = UINT32_MAX, a0 = a & mask, a1 = a >> 32, b0 = b & mask, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & mask);
    *low = a * b;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

static inline int leading_zeros(uint64_t w)
{
    int n = 0;
    for (int step = 32; step > 0; step /= 2)
        if (w >> (64 - step) == 0) {
            w <<= step;
            n += step;
        }
    return n;
}

/* *x = the double nearest to w 10^q, w > 0; or 0 comes back: 64 bits are too few to tell. With `cut`, w are the first
 * 19 digits of more.
 *
 * Let w' = w 2^z >= 2^63 and p + f as above. Up to a power of two the number is w' (p + f), which is at least w' p and
 * below w' p + w'. When no midpoint of two doubles is between these, both round to the same double. If w is cut, it is
 * below (w' + 2^z) (p + f) < w' p + 17 * 2^64, for z <= 4 then. */
static inline int scale(uint64_t w, int32_t q, int cut, double *x)
{
    const int zeros = leading_zeros(w);
    uint64_t low;
    w <<= zeros;
    const uint64_t high = multiply(w, powers[q - MIN_POWER], &low);
    const int shift = 10 + (int)(high >> 63); /* 53 bits stay */
    const uint64_t half = UINT64_C(1) << (shift - 1), rest = high & (2 * half - 1);
    uint64_t kept = high >> shift;
    if (cut && rest <= half && rest + 18 > half)
        return 0;
    if (q >= 0 && q <= EXACT_POWER) {
        kept += rest > half || (rest == half && (low > 0 || (kept & 1)));
    } else {
        if (rest == half - 1 && low > ~w)
            return 0;
        kept += rest >= half; /* even if it is no more than the half so far: f > 0 */
    }
    /* b = floor(log2(10^q)) - 63. The highest bit of kept adds 1 to the exponent's field, or 2 when kept is 2^53. */
    const int32_t b = (q * 217706 - (q < 0 ? 65535 : 0)) / 65536 - 63;
    const uint64_t bits = ((uint64_t)(b + 64 - zeros + shift + 1074) << 52) + kept;
    memcpy(x, &bits, sizeof *x);
    return 1;
}

/* The first 19 of more digits, among them maybe a point. */
static inline uint64_t first_digits(const byte *p)
{
    uint64_t w = 0;
    for (int n = 0; n < 19; p++)
        if (*p != '.') {
            w = 10 * w + (byte)(*p - '0');
            n++;
        }
    return w;
}

typedef enum { NO_NUMBER, EASY, HARD } number;

/* Reads [+-] digits [. digits] [e [+-] digits], with a digit at least before the e, and moves *at behind it. */
static inline number read_number(const byte **at, double *x)
{
    const byte *p = *at;
    const int negative = *p == '-';
    p += negative || *p == '+';
    const byte *begin = p;
    uint64_t w = 0;
    int64_t q = 0;
    for (; is_digit(*p); p++)
        w = 10 * w + (byte)(*p - '0');
    int64_t n_digits = p - begin;
    if (*p == '.') {
        const byte *point = p++;
        for (; is_digit(*p); p++)
            w = 10 * w + (byte)(*p - '0');
        q = point + 1 - p;
        n_digits -= q;
    }
    if (n_digits == 0)
        return NO_NUMBER;
    if (*p == 'e' || *p == 'E') {
        const int down = p[1] == '-';
        const byte *digits = p + 1 + (down || p[1] == '+');
        int64_t power = 0;
        for (p = digits; is_digit(*p); p++)
            if (power < INT32_MAX)
                power = 10 * power + (*p - '0');
        if (p == digits)
            return NO_NUMBER;
        q += down ? -power : power;
    }
    *at = p;
    *x = 0;
    int cut = 0;
    if (n_digits > 19) { /* w has lost its highest digits, unless they are zeros */
        for (; *begin == '0' || *begin == '.'; begin++)
            n_digits -= *begin == '0';
        cut = n_digits > 19;
        if (cut)
            w = first_digits(begin);
        q += cut ? n_digits - 19 : 0;
    }
    if (w == 0 || (q == 0 && w < UINT64_C(1) << 53))
        *x = (double)w;
    else if (q < MIN_POWER || q > MAX_POWER || !scale(w, (int32_t)q, cut, x))
        return HARD;
    *x = negative ? -*x : *x;
    return EASY;
}

#endif
