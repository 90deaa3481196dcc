#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
        table[i] = c;
    }
}

static uint32_t crc_portable(uint32_t c, const uint8_t *p, size_t len)
{
    pthread_once(&table_once, table_make);
    while (len--)
        c = table[(c ^ *p++) & 0xff] ^ (c >> 8);
    return c;
}

/*
 * Checksums are polynomials modulo the Castagnoli one, the lowest bit being the
 * highest power. Appending n bytes multiplies by x^(8n), which is made from
 * squares.
 */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (; a; a <<= 1) {
        product ^= b & -(a >> 31);
        b = (b >> 1) ^ (0x82f63b78u & -(b & 1));
    }
    return product;
}

#if defined(__x86_64__)
/*
 * The instruction has a result every cycle, but each only after three: so three
 * stretches are checksummed at once, and joined.
 */
#define LANE       4096
#define LANE_POWER 0x35d73a62u /* x^(8 * LANE) */

__attribute__((target("sse4.2"))) static uint32_t crc_lanes(uint32_t crc,
                                                            const uint8_t *p)
{
    uint64_t a = crc, b = 0, c = 0;

    for (size_t i = 0; i < LANE; i += 8) {
        uint64_t word[3];

        memcpy(&word[0], p + i, 8);
        memcpy(&word[1], p + LANE + i, 8);
        memcpy(&word[2], p + 2 * LANE + i, 8);
        a = _mm_crc32_u64(a, word[0]);
        b = _mm_crc32_u64(b, word[1]);
        c = _mm_crc32_u64(c, word[2]);
    }
    b ^= multiply((uint32_t)a, LANE_POWER);
    return (uint32_t)c ^ multiply((uint32_t)b, LANE_POWER);
}

__attribute__((target("sse4.2"))) static uint32_t
crc_sse42(uint32_t crc, const uint8_t *p, size_t len)
{
    uint64_t c = crc;

    for (; len >= 3 * LANE; p += 3 * LANE, len -= 3 * LANE)
        c = crc_lanes((uint32_t)c, p);
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word;

        memcpy(&word, p, 8);
        c = _mm_crc32_u64(c, word);
    }
    while (len--)
        c = _mm_crc32_u8((uint32_t)c, *p++);
    return (uint32_t)c;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
    uint32_t c = ~crc;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_sse42(c, data, len);
#endif
    return ~crc_portable(c, data, len);
}

uint32_t crc32c_join(uint32_t a, uint32_t b, uint64_t b_len)
{
    uint32_t power = 0x00800000u; /* x^8 */

    for (; b_len && a; b_len >>= 1) {
        if (b_len & 1)
            a = multiply(a, power);
        power = multiply(power, power);
    }
    return a ^ b;
}
