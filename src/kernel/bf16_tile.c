/*
 * A tile is 32 by 32 at most. With AMX it is four of the eight tile registers,
 * two hold squares of A and two of B, so that each square that is read is used
 * twice. With AVX-512's products of pairs it goes by eight rows.
 *
 * The system lets a process use AMX when it asks, once, for all its threads:
 * their state is 8 KB more to switch and to save for a signal. A thread has
 * such state from bf16_tiles.begin() to end() only.
 */
#include "kernel/bf16_tile.h"

#include <pthread.h>
#include <stdatomic.h>

#include "kernel/cpu.h"
#include "kernel/gemm_tile.h"

static atomic_int limit = BF16_TILE_AMX;

void bf16_tile_limit(enum bf16_tile_kind most)
{
    atomic_store(&limit, most);
}

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of asm/prctl.h, which older systems have without these. */
#define REQUEST_PERMISSION 0x1023
#define TILE_DATA          18 /* a bit of XCR0 */
#define TILE_CONFIG        17

#define AMX_TARGET         __attribute__((target("amx-tile,amx-bf16")))
#define BF16_TARGET                                                            \
    __attribute__((                                                            \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")))

/* The compiler does not know what memory the tile instructions touch. */
#define MEMORY_BARRIER __asm__ volatile("" ::: "memory")

/* ---- AMX ---- */

struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

AMX_TARGET static void amx_begin(void)
{
    static const struct tile_config config = {
        .palette = 1,
        .row_bytes = { [0 ... 7] = BF16_TILE_BYTES / BF16_TILE_ROWS },
        .rows = { [0 ... 7] = BF16_TILE_ROWS },
    };

    _tile_loadconfig(&config);
}

AMX_TARGET static void amx_end(void)
{
    _tile_release();
}

/* Registers: 0 and 1 the upper half of C, 2 and 3 the lower, 4 and 5 A, 6 and
 * 7 B. */
#define AMX_STEPS(HIGH, WIDE)                                                  \
    for (int64_t i = 0; i < steps; i++) {                                      \
        _tile_loadd(4, x, 64);                                                 \
        _tile_loadd(6, y, 64);                                                 \
        _tile_dpbf16ps(0, 4, 6);                                               \
        if (WIDE == 2) {                                                       \
            _tile_loadd(7, y + BF16_TILE_BYTES, 64);                           \
            _tile_dpbf16ps(1, 4, 7);                                           \
        }                                                                      \
        if (HIGH == 2) {                                                       \
            _tile_loadd(5, x + BF16_TILE_BYTES, 64);                           \
            _tile_dpbf16ps(2, 5, 6);                                           \
        }                                                                      \
        if (HIGH == 2 && WIDE == 2)                                            \
            _tile_dpbf16ps(3, 5, 7);                                           \
        x += HIGH * BF16_TILE_BYTES;                                           \
        y += WIDE * BF16_TILE_BYTES;                                           \
    }

AMX_TARGET static void amx_tile(BF16_TILE_ARGS)
{
    const char *x = a, *y = b;
    float *low = c + BF16_TILE_ROWS * c_row;
    long row = (long)c_row * (long)sizeof(float);

    MEMORY_BARRIER;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (add) {
        _tile_loadd(0, c, row);
        if (wide == 2)
            _tile_loadd(1, c + 16, row);
        if (high == 2)
            _tile_loadd(2, low, row);
        if (high == 2 && wide == 2)
            _tile_loadd(3, low + 16, row);
    }
    if (high == 2 && wide == 2)
        AMX_STEPS(2, 2)
    else if (high == 2)
        AMX_STEPS(2, 1)
    else if (wide == 2)
        AMX_STEPS(1, 2)
    else
        AMX_STEPS(1, 1)
    _tile_stored(0, c, row);
    if (wide == 2)
        _tile_stored(1, c + 16, row);
    if (high == 2)
        _tile_stored(2, low, row);
    if (high == 2 && wide == 2)
        _tile_stored(3, low + 16, row);
    MEMORY_BARRIER;
}

/* ---- AVX-512 ---- */

/* Eight rows: x is a square of A or its lower half, y one or two of B; *_step
 * is the way to the next ones. */
#define PAIR_ROWS(WIDE)                                                        \
    BF16_TARGET static void pair_rows_##WIDE(                                  \
        int64_t steps, const char *x, size_t x_step, const char *y, float *c,  \
        int64_t c_row, bool add)                                               \
    {                                                                          \
        __m512 acc[8][WIDE];                                                   \
        __m512i row[WIDE];                                                     \
                                                                               \
        GEMM_EACH (i, 8)                                                       \
            GEMM_EACH (j, WIDE) {                                              \
                acc[i][j] = add ? _mm512_loadu_ps(c + i * c_row + 16 * j)      \
                                : _mm512_setzero_ps();                         \
            }                                                                  \
        for (; steps; steps--, x += x_step, y += WIDE * BF16_TILE_BYTES)       \
            for (int p = 0; p < BF16_TILE_ROWS; p++) {                         \
                GEMM_EACH (j, WIDE) {                                          \
                    row[j] =                                                   \
                        _mm512_loadu_si512(y + j * BF16_TILE_BYTES + 64 * p);  \
                }                                                              \
                GEMM_EACH (i, 8) {                                             \
                    __m512i pair =                                             \
                        _mm512_set1_epi32(((const int *)x)[16 * i + p]);       \
                                                                               \
                    GEMM_EACH (j, WIDE) {                                      \
                        acc[i][j] = _mm512_dpbf16_ps(                          \
                            acc[i][j], (__m512bh)pair, (__m512bh)row[j]);      \
                    }                                                          \
                }                                                              \
            }                                                                  \
        GEMM_EACH (i, 8)                                                       \
            GEMM_EACH (j, WIDE) {                                              \
                _mm512_storeu_ps(c + i * c_row + 16 * j, acc[i][j]);           \
            }                                                                  \
    }
PAIR_ROWS(1)
PAIR_ROWS(2)

static void pair_tile(BF16_TILE_ARGS)
{
    for (int i = 0; i < 2 * high; i++)
        (wide == 2 ? pair_rows_2 : pair_rows_1)(
            steps, (const char *)a + i * (BF16_TILE_BYTES / 2),
            (size_t)high * BF16_TILE_BYTES, b, c + i * 8 * c_row, c_row, add);
}

/* ---- which ---- */

static const struct bf16_tiles amx = { amx_begin, amx_end, amx_tile };
static const struct bf16_tiles pairs = { NULL, NULL, pair_tile };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_pairs, have_squares;

__attribute__((target("xsave"))) static bool system_has_tiles(void)
{
    uint64_t both = (uint64_t)1 << TILE_DATA | (uint64_t)1 << TILE_CONFIG;

    return (_xgetbv(0) & both) == both &&
           !syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
}

static void find_out(void)
{
    unsigned a, b, c, d;

    have_pairs = cpu_kind() == CPU_AVX512 &&
                 __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 5);
    have_squares = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 22) &&
                   (d & 1u << 24) && system_has_tiles();
}

const struct bf16_tiles *bf16_tile_best(void)
{
    int most = atomic_load(&limit);

    pthread_once(&once, find_out);
    if (have_squares && most >= BF16_TILE_AMX)
        return &amx;
    if (have_pairs && most >= BF16_TILE_AVX512)
        return &pairs;
    return NULL;
}

#else

const struct bf16_tiles *bf16_tile_best(void)
{
    return NULL;
}

#endif
