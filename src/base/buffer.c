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

/* Small buffers: record and data in one piece, the data's room a power of two
 * from 256 bytes on. */
#define CLASS_MIN   8
#define CLASS_COUNT 9
#define KEEP_BYTES  ((size_t)1 << 20)  /* of a class, by a thread */
#define FEW_BYTES   ((size_t)64 << 10) /* of these, made by others */
#define OWED_BYTES  ((size_t)4 << 20)  /* to a thread, by the others */
#define HUGE_PAGE   ((size_t)2 << 20)
#define SHARDS      64

_Static_assert((BUFFER_LARGE >> CLASS_MIN) == 1u << (CLASS_COUNT - 1),
               "the largest class is that below BUFFER_LARGE");

/*
 * What a thread keeps. It outlives the thread, since others may owe it
 * something: the next thread takes it over.
 */
struct cache {
    struct buffer *first[CLASS_COUNT];
    size_t bytes[CLASS_COUNT];
    struct cache *next; /* in the list of all, which only grows */
    atomic_bool taken;  /* by a thread that runs */
    atomic_llong live;  /* bytes made less bytes ended here; only its own
                           thread writes it, the sum is what counts */
    /* Made here and ended elsewhere. */
    _Alignas(64) struct buffer *_Atomic owed;
    atomic_size_t owed_bytes;
};

static pthread_key_t cache_key;
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;
static struct cache *_Atomic caches;
static _Thread_local struct cache *cache;

/* Large buffers that wait for reuse, newest first. */
static struct shard {
    pthread_mutex_t lock;
    struct buffer *first; /* under lock */
    size_t idle;          /* bytes, under lock */
} shards[SHARDS] = { [0 ... SHARDS - 1] = { .lock =
                                                PTHREAD_MUTEX_INITIALIZER } };
static atomic_size_t limit; /* 0: not asked for yet */

/* ---- small ones ---- */

static int class_of(size_t size)
{
    return size <= (size_t)1 << CLASS_MIN
               ? 0
               : 64 - __builtin_clzl(size - 1) - CLASS_MIN;
}

static void free_list(struct buffer *b)
{
    while (b) {
        struct buffer *next = b->next;

        free(b);
        b = next;
    }
}

static void cache_end(void *arg)
{
    struct cache *c = arg;

    for (int i = 0; i < CLASS_COUNT; i++) {
        free_list(c->first[i]);
        c->first[i] = NULL;
        c->bytes[i] = 0;
    }
    free_list(atomic_exchange(&c->owed, NULL));
    atomic_store(&c->owed_bytes, 0);
    cache = NULL;
    atomic_store(&c->taken, false);
}

static void cache_make_key(void)
{
    CHECK(!pthread_key_create(&cache_key, cache_end));
}

static struct cache *cache_adopt(void)
{
    struct cache *c;

    for (c = atomic_load(&caches); c; c = c->next) {
        bool no = false;

        if (atomic_compare_exchange_strong(&c->taken, &no, true))
            return c;
    }
    c = aligned_alloc(64, sizeof(*c));
    CHECK(c);
    memset(c, 0, sizeof(*c));
    atomic_init(&c->taken, true);
    c->next = atomic_load(&caches);
    while (!atomic_compare_exchange_weak(&caches, &c->next, c))
        ;
    return c;
}

static struct cache *cache_get(void)
{
    if (UNLIKELY(!cache)) {
        pthread_once(&cache_once, cache_make_key);
        cache = cache_adopt();
        pthread_setspecific(cache_key, cache);
    }
    return cache;
}

/* False when the thread has enough of them. */
static bool keep(struct cache *own, struct buffer *b, size_t most)
{
    int c = class_of(b->room);

    if (own->bytes[c] + b->room > most)
        return false;
    b->next = own->first[c];
    own->first[c] = b;
    own->bytes[c] += b->room;
    return true;
}

/* False when there is no such thread any more, or it is owed enough. */
static bool give_back(struct cache *to, struct buffer *b)
{
    if (!atomic_load_explicit(&to->taken, memory_order_relaxed) ||
        atomic_load_explicit(&to->owed_bytes, memory_order_relaxed) >=
            OWED_BYTES)
        return false;
    atomic_fetch_add_explicit(&to->owed_bytes, b->room, memory_order_relaxed);
    b->next = atomic_load_explicit(&to->owed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &to->owed, &b->next, b, memory_order_release, memory_order_relaxed))
        ;
    return true;
}

/* Takes over what others owe. */
static void collect(struct cache *own)
{
    struct buffer *b;

    if (!atomic_load_explicit(&own->owed, memory_order_relaxed))
        return;
    b = atomic_exchange_explicit(&own->owed, NULL, memory_order_acquire);
    while (b) {
        struct buffer *next = b->next;

        atomic_fetch_sub_explicit(&own->owed_bytes, b->room,
                                  memory_order_relaxed);
        if (!keep(own, b, KEEP_BYTES))
            free(b);
        b = next;
    }
}

static void small_release(struct buffer *b)
{
    struct cache *own = cache_get(), *home = b->arg;

    if (POOLED &&
        (home == own ? keep(own, b, KEEP_BYTES)
                     : keep(own, b, FEW_BYTES) || give_back(home, b) ||
                           keep(own, b, KEEP_BYTES)))
        return;
    free(b);
}

static struct buffer *small_new(struct cache *own, size_t size)
{
    int c = class_of(size);
    size_t room = (size_t)1 << (CLASS_MIN + c);
    struct buffer *b;

    if (POOLED) {
        if (UNLIKELY(!own->first[c]))
            collect(own);
        b = own->first[c];
        if (LIKELY(b)) {
            own->first[c] = b->next;
            own->bytes[c] -= room;
            b->arg = own;
            return b;
        }
    }
    b = aligned_alloc(BUFFER_ALIGN,
                      BUFFER_HEAD +
                          (POOLED ? room : (size + 63) & ~(size_t)63));
    if (b) {
        b->data = (uint8_t *)b + BUFFER_HEAD;
        b->room = room;
        b->release = small_release;
        b->arg = own;
    }
    return b;
}

/* ---- large ones ---- */

static struct shard *shard_of(size_t room)
{
    return &shards[(room >> 12) * 0x9e3779b97f4a7c15ull >> 58];
}

static void large_free(struct buffer *b)
{
    munmap(b->data, b->room);
    free(b);
}

static void large_release(struct buffer *b)
{
    struct shard *s = shard_of(b->room);

    if (!POOLED) {
        large_free(b);
        return;
    }
    b->idle_since_ms = clock_ms();
    pthread_mutex_lock(&s->lock);
    b->next = s->first;
    s->first = b;
    s->idle += b->room;
    pthread_mutex_unlock(&s->lock);
}

static struct buffer *large_reuse(size_t room)
{
    struct shard *s = shard_of(room);
    struct buffer **at, *b;

    pthread_mutex_lock(&s->lock);
    for (at = &s->first; (b = *at); at = &b->next)
        if (b->room == room) {
            *at = b->next;
            s->idle -= room;
            break;
        }
    pthread_mutex_unlock(&s->lock);
    return b;
}

/* Rounded up to a multiple of an eighth of its power of two: sizes that differ
 * from step to step find each other's memory. What is never written takes no
 * memory. 0 when there is no such size. */
static size_t large_room(size_t size)
{
    size_t step = (size_t)1 << (63 - __builtin_clzl(size));

    step = MAX(step / 8, (size_t)4096);
    return size > SIZE_MAX - step ? 0 : (size + step - 1) & ~(step - 1);
}

static struct buffer *large_new(size_t size)
{
    size_t room = large_room(size);
    struct buffer *b;
    void *data;

    if (!room)
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

/* ---- all of them ---- */

static void count_live(struct cache *own, long long bytes)
{
    atomic_store_explicit(
        &own->live,
        atomic_load_explicit(&own->live, memory_order_relaxed) + bytes,
        memory_order_relaxed);
}

static size_t live_bytes(void)
{
    long long sum = 0;

    for (struct cache *c = atomic_load(&caches); c; c = c->next)
        sum += atomic_load_explicit(&c->live, memory_order_relaxed);
    return sum > 0 ? (size_t)sum : 0;
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
    size_t max = limit_get();

    return size <= max && live_bytes() <= max - size;
}

struct buffer *buffer_new(size_t size)
{
    struct cache *own = cache_get();
    struct buffer *b = NULL;

    if (size < BUFFER_LARGE)
        b = small_new(own, size);
    else if (buffer_within_limit(size))
        b = large_new(size);
    if (!b)
        return NULL;
    atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
    b->size = size;
    b->next = NULL;
    count_live(own, (long long)b->room);
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

void buffer_end(struct buffer *b)
{
    if (b->room)
        count_live(cache_get(), -(long long)b->room);
    b->release(b);
}

/* Takes those that were idle for so long out of a shard. */
static struct buffer *take_old(struct shard *s, uint64_t now, uint64_t age_ms)
{
    struct buffer **at, *b, *gone = NULL;

    pthread_mutex_lock(&s->lock);
    for (at = &s->first; (b = *at);) {
        if (now - b->idle_since_ms < age_ms) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        s->idle -= b->room;
        b->next = gone;
        gone = b;
    }
    pthread_mutex_unlock(&s->lock);
    return gone;
}

void buffer_trim(uint64_t age_ms)
{
    uint64_t now = clock_ms();

    for (int i = 0; i < SHARDS; i++) {
        struct buffer *b = take_old(&shards[i], now, age_ms);

        while (b) {
            struct buffer *next = b->next;

            large_free(b);
            b = next;
        }
    }
}

void buffer_usage(size_t *ret_live, size_t *ret_idle)
{
    *ret_idle = 0;
    for (int i = 0; i < SHARDS; i++) {
        pthread_mutex_lock(&shards[i].lock);
        *ret_idle += shards[i].idle;
        pthread_mutex_unlock(&shards[i].lock);
    }
    *ret_live = live_bytes();
}
