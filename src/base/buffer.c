#include "base/buffer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#if defined(BASE_ASAN) || defined(BASE_TSAN)
#define POOLED 0
#else
#define POOLED 1
#endif

/*
 * Small buffers: header and data in one piece, the data's room a power of two
 * from 256 bytes on. Each thread keeps some of each class for itself, up to
 * KEEP of them or KEEP_BYTES; what is beyond goes to malloc.
 */
#define HEAD                                                                   \
    ((sizeof(struct buffer) + BUFFER_ALIGN - 1) & ~(size_t)(BUFFER_ALIGN - 1))
#define CLASS_MIN   8
#define CLASS_COUNT 10
#define KEEP        64
#define KEEP_BYTES  ((size_t)512 << 10)
#define HUGE_PAGE   ((size_t)2 << 20)

struct cache {
    struct buffer *first[CLASS_COUNT];
    unsigned count[CLASS_COUNT];
};

static pthread_key_t cache_key;
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;
static _Thread_local struct cache *cache;

/* Large buffers that wait for reuse, newest first. */
static pthread_mutex_t large_lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer *large_first;
static size_t large_idle; /* under large_lock */
static atomic_size_t live;
static atomic_size_t limit; /* 0: not asked for yet */

static void cache_end(void *arg)
{
    struct cache *c = arg;

    for (int i = 0; i < CLASS_COUNT; i++)
        while (c->first[i]) {
            struct buffer *b = c->first[i];

            c->first[i] = b->next;
            free(b);
        }
    free(c);
    cache = NULL;
}

static void cache_make_key(void)
{
    CHECK(!pthread_key_create(&cache_key, cache_end));
}

static struct cache *cache_get(void)
{
    if (UNLIKELY(!cache)) {
        pthread_once(&cache_once, cache_make_key);
        cache = MEM_NEW(struct cache);
        pthread_setspecific(cache_key, cache);
    }
    return cache;
}

static int class_of(size_t size)
{
    int c = 0;

    while (((size_t)1 << (CLASS_MIN + c)) < size)
        c++;
    return c;
}

static void small_release(struct buffer *b)
{
    int c = class_of(b->room);
    struct cache *own;

    if (!POOLED) {
        free(b);
        return;
    }
    own = cache_get();
    if (own->count[c] >= MIN(KEEP, KEEP_BYTES / b->room)) {
        free(b);
        return;
    }
    b->next = own->first[c];
    own->first[c] = b;
    own->count[c]++;
}

static struct buffer *small_new(size_t size)
{
    int c = class_of(size);
    size_t room = (size_t)1 << (CLASS_MIN + c);
    struct buffer *b;

    if (POOLED) {
        struct cache *own = cache_get();

        b = own->first[c];
        if (b) {
            own->first[c] = b->next;
            own->count[c]--;
            return b;
        }
    }
    b = aligned_alloc(BUFFER_ALIGN,
                      HEAD + (POOLED ? room : (size + 63) & ~(size_t)63));
    if (b) {
        b->data = (uint8_t *)b + HEAD;
        b->room = room;
        b->release = small_release;
    }
    return b;
}

static void large_free(struct buffer *b)
{
    munmap(b->data, b->room);
    free(b);
}

static void large_release(struct buffer *b)
{
    if (!POOLED) {
        large_free(b);
        return;
    }
    b->idle_since_ms = clock_ms();
    pthread_mutex_lock(&large_lock);
    b->next = large_first;
    large_first = b;
    large_idle += b->room;
    pthread_mutex_unlock(&large_lock);
}

static struct buffer *large_reuse(size_t room)
{
    struct buffer **at, *b;

    pthread_mutex_lock(&large_lock);
    for (at = &large_first; (b = *at); at = &b->next)
        if (b->room == room) {
            *at = b->next;
            large_idle -= room;
            break;
        }
    pthread_mutex_unlock(&large_lock);
    return b;
}

static struct buffer *large_new(size_t size)
{
    size_t room = (size + 4095) & ~(size_t)4095;
    struct buffer *b;
    void *data;

    if (room < size)
        return NULL;
    b = large_reuse(room);
    if (b)
        return b;
    data = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    if (room >= HUGE_PAGE)
        (void)madvise(data, room, MADV_HUGEPAGE);
    b = MEM_NEW(struct buffer);
    b->data = data;
    b->room = room;
    b->release = large_release;
    return b;
}

static size_t limit_get(void)
{
    size_t bytes = atomic_load_explicit(&limit, memory_order_relaxed);

    if (UNLIKELY(!bytes)) {
        bytes = (size_t)sysconf(_SC_PHYS_PAGES) / 10 * 9 *
                (size_t)sysconf(_SC_PAGESIZE);
        atomic_store(&limit, bytes);
    }
    return bytes;
}

void buffer_limit(size_t bytes)
{
    atomic_store(&limit, bytes);
}

bool buffer_within_limit(size_t size)
{
    size_t used = atomic_load_explicit(&live, memory_order_relaxed);
    size_t max = limit_get();

    return size <= max && used <= max - size;
}

struct buffer *buffer_new(size_t size)
{
    struct buffer *b = NULL;

    if (size < BUFFER_LARGE)
        b = small_new(size);
    else if (buffer_within_limit(size))
        b = large_new(size);

    if (!b)
        return NULL;
    atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
    b->size = size;
    b->next = NULL;
    atomic_fetch_add_explicit(&live, b->room, memory_order_relaxed);
    return b;
}

struct wrapped {
    struct buffer b;
    void (*free_fn)(void *);
};

static void wrap_release(struct buffer *b)
{
    struct wrapped *w = CONTAINER(b, struct wrapped, b);

    if (w->free_fn)
        w->free_fn(b->arg);
    mem_free(w);
}

struct buffer *buffer_wrap(void *data, size_t size, void (*free_fn)(void *),
                           void *arg)
{
    struct wrapped *w = MEM_NEW(struct wrapped);

    atomic_init(&w->b.refs, 1);
    w->b.data = data;
    w->b.size = size;
    w->b.arg = arg;
    w->b.release = wrap_release;
    w->free_fn = free_fn;
    return &w->b;
}

struct buffer *buffer_ref(struct buffer *b)
{
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void buffer_unref(struct buffer *b)
{
    if (!b)
        return;
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_release) != 1)
        return;
    atomic_thread_fence(memory_order_acquire);
#ifdef BASE_TSAN
    (void)atomic_load_explicit(&b->refs, memory_order_acquire);
#endif
    atomic_fetch_sub_explicit(&live, b->room, memory_order_relaxed);
    b->release(b);
}

void buffer_trim(uint64_t age_ms)
{
    uint64_t now = clock_ms();
    struct buffer **at, *b, *gone = NULL;

    pthread_mutex_lock(&large_lock);
    for (at = &large_first; (b = *at);) {
        if (now - b->idle_since_ms < age_ms) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        large_idle -= b->room;
        b->next = gone;
        gone = b;
    }
    pthread_mutex_unlock(&large_lock);
    while ((b = gone)) {
        gone = b->next;
        large_free(b);
    }
}

void buffer_usage(size_t *ret_live, size_t *ret_idle)
{
    pthread_mutex_lock(&large_lock);
    *ret_idle = large_idle;
    pthread_mutex_unlock(&large_lock);
    *ret_live = atomic_load(&live);
}
