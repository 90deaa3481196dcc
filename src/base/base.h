/*
 * The few words of the compiler that the whole tree uses, each behind a macro
 * so that gcc and clang both take it.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN          __attribute__((noreturn))
#define LIKELY(x)         __builtin_expect(!!(x), 1)
#define UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define COUNT(array)      (sizeof(array) / sizeof((array)[0]))
#define CONTAINER(ptr, type, field)                                            \
    ((type *)((char *)(ptr)-offsetof(type, field)))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#if defined(__SANITIZE_THREAD__)
#define BASE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BASE_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BASE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BASE_ASAN 1
#endif
#endif

/*
 * A loop that is compiled for several vector widths, the widest that the CPU
 * has being chosen when the program is loaded. The sanitizers' run times are
 * not up yet when the choice is made, so their builds have one version. So do
 * those of clang: there (seen with 14) the choosers of static functions of one
 * name collide, and functions that are not static are not found by others.
 */
#if defined(BASE_TSAN) || defined(BASE_ASAN) || !defined(__x86_64__) ||        \
    defined(__clang__) || defined(BASE_NO_CLONES)
#define VECTOR_CLONES
#else
#define VECTOR_CLONES                                                          \
    __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#endif

/*
 * A function that reads or writes a variable's elements while another thread
 * may do so too, as asynchronous training means it to (Hogwild). Only there.
 */
#ifdef BASE_TSAN
#define RACY __attribute__((no_sanitize("thread"), noinline))
#else
#define RACY
#endif

/* A mistake of ours: say where, and stop. Also in release builds. */
#define CHECK(cond)                                                            \
    do {                                                                       \
        if (UNLIKELY(!(cond)))                                                 \
            base_panic(__FILE__, __LINE__, #cond);                             \
    } while (0)

NORETURN void base_panic(const char *file, int line, const char *what);

#endif
