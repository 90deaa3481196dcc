#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/fpu.h"
#include "base/mem.h"
#include "base/thread.h"

/* How much longer than asked for a piece of a loop may be. */
#define GRAIN_MAX 16
/* A thread that comes within this after it was called had a core to run on. */
#define PROMPT_NS 80000
#define TRY_EVERY 32

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct pool_job *first, **last; /* under lock */
    struct split *splits;           /* under lock: loops that may be joined */
    atomic_int queued;              /* jobs; changed under lock */
    atomic_int idle; /* threads asleep and not called; changed under lock */
    int called;      /* under lock: threads that shall wake */
    atomic_bool stopping; /* changed under lock */
    atomic_uint late_ns;  /* from call to arrival: a moving average */
    atomic_uint asked;    /* how often pool_prompt() had to guess */
    int count;
    pthread_t threads[];
};

/*
 * A split loop, on its caller's stack. The caller and its helpers draw pieces
 * from one counter. A helper looks between two pieces whether a job waits, and
 * leaves for it. The caller goes on to the end, takes the loop off the list,
 * and waits for those who are still in a piece.
 */
struct split {
    struct split *prev, *next; /* under pool->lock */
    atomic_llong at;
    int64_t n, grain;
    atomic_int helpers; /* in it now; changed under pool->lock */
    int helpers_max;
    uint64_t called_ns; /* under pool->lock: 0 when nobody was, or one came */
    void (*fn)(void *, int64_t, int64_t);
    void *arg;
    pthread_cond_t done;
};

/* Under lock: has one more thread get up, if there is one. */
static bool call_one(struct pool *p)
{
    int idle = atomic_load_explicit(&p->idle, memory_order_relaxed);

    if (!idle)
        return false;
    atomic_store_explicit(&p->idle, idle - 1, memory_order_relaxed);
    p->called++;
    pthread_cond_signal(&p->wake);
    return true;
}

static bool split_left(struct split *s)
{
    return atomic_load_explicit(&s->at, memory_order_relaxed) < s->n;
}

/* p: a helper's, which leaves when a job waits. NULL: the caller's. */
static void split_work(struct split *s, struct pool *p)
{
    int64_t begin;

    while (!(p && atomic_load_explicit(&p->queued, memory_order_relaxed)) &&
           (begin = atomic_fetch_add_explicit(&s->at, s->grain,
                                              memory_order_relaxed)) < s->n)
        s->fn(s->arg, begin, MIN(begin + s->grain, s->n));
}

/* Under lock: how long a thread that was called for the loop took. */
static void note_arrival(struct pool *p, struct split *s)
{
    uint64_t late, was;

    if (!s->called_ns)
        return;
    late = MIN(clock_ns() - s->called_ns, (uint64_t)1000000);
    was = atomic_load_explicit(&p->late_ns, memory_order_relaxed);
    atomic_store_explicit(&p->late_ns, (unsigned)((3 * was + late) / 4),
                          memory_order_relaxed);
    s->called_ns = 0;
}

/* Under lock, which it lets go of while it helps. */
static bool split_help(struct pool *p)
{
    struct split *s;

    for (s = p->splits; s; s = s->next)
        if (split_left(s) && atomic_load(&s->helpers) < s->helpers_max)
            break;
    if (!s)
        return false;
    atomic_fetch_add(&s->helpers, 1);
    note_arrival(p, s);
    pthread_mutex_unlock(&p->lock);
    split_work(s, p);
    pthread_mutex_lock(&p->lock);
    if (atomic_fetch_sub(&s->helpers, 1) == 1)
        pthread_cond_signal(&s->done);
    return true;
}

/* Under lock: until it is called. */
static void sleep_here(struct pool *p)
{
    atomic_fetch_add(&p->idle, 1);
    while (!p->called && !p->stopping)
        pthread_cond_wait(&p->wake, &p->lock);
    if (p->called)
        p->called--;
    else
        atomic_fetch_sub(&p->idle, 1);
}

static struct pool_job *next_job(struct pool *p)
{
    struct pool_job *job;

    pthread_mutex_lock(&p->lock);
    while (!p->first && !p->stopping)
        if (!split_help(p))
            sleep_here(p);
    job = p->first;
    if (job) {
        p->first = job->next;
        if (!p->first)
            p->last = &p->first;
        atomic_fetch_sub(&p->queued, 1);
    }
    pthread_mutex_unlock(&p->lock);
    return job;
}

static void *thread_main(void *arg)
{
    struct pool *p = arg;
    struct pool_job *job;

    fpu_flush_denormals();
    while ((job = next_job(p)))
        job->run(job);
    return NULL;
}

struct pool *pool_new(int threads)
{
    struct pool *p =
        mem_new(sizeof(*p) + (size_t)threads * sizeof(p->threads[0]));

    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->last = &p->first;
    atomic_init(&p->late_ns, 2 * PROMPT_NS);
    for (p->count = 0; p->count < threads; p->count++)
        if (thread_start(&p->threads[p->count], NULL, thread_main, p))
            break;
    CHECK(p->count > 0);
    return p;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->count; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

int pool_threads(const struct pool *p)
{
    return p->count;
}

bool pool_stopping(struct pool *p)
{
    return atomic_load_explicit(&p->stopping, memory_order_relaxed);
}

int pool_idle(struct pool *p)
{
    return atomic_load_explicit(&p->idle, memory_order_relaxed);
}

bool pool_prompt(struct pool *p)
{
    if (atomic_load_explicit(&p->late_ns, memory_order_relaxed) < PROMPT_NS)
        return true;
    return atomic_fetch_add_explicit(&p->asked, 1, memory_order_relaxed) %
               TRY_EVERY ==
           0;
}

void pool_post(struct pool *p, struct pool_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&p->lock);
    *p->last = job;
    p->last = &job->next;
    atomic_fetch_add(&p->queued, 1);
    call_one(p);
    pthread_mutex_unlock(&p->lock);
}

static _Thread_local struct pool_kept *keeping;

void pool_post_near(struct pool *p, struct pool_job *job)
{
    if (!keeping) {
        pool_post(p, job);
        return;
    }
    job->next = NULL;
    *keeping->last = job;
    keeping->last = &job->next;
}

void pool_keep(struct pool_kept *k)
{
    k->first = NULL;
    k->last = &k->first;
    keeping = k;
}

void pool_keep_end(void)
{
    keeping = NULL;
}

bool pool_kept_run(struct pool_kept *k)
{
    struct pool_job *job = k->first;

    if (!job)
        return false;
    k->first = job->next;
    if (!k->first)
        k->last = &k->first;
    job->run(job);
    return true;
}

static void split_open(struct pool *p, struct split *s)
{
    pthread_mutex_lock(&p->lock);
    s->next = p->splits;
    if (s->next)
        s->next->prev = s;
    p->splits = s;
    for (int i = 0; i < s->helpers_max && call_one(p); i++)
        if (!i)
            s->called_ns = clock_ns();
    pthread_mutex_unlock(&p->lock);
}

static void split_close(struct pool *p, struct split *s)
{
    pthread_mutex_lock(&p->lock);
    if (s->prev)
        s->prev->next = s->next;
    else
        p->splits = s->next;
    if (s->next)
        s->next->prev = s->prev;
    note_arrival(p, s); /* nobody came: it took longer than all of the work */
    while (atomic_load(&s->helpers))
        pthread_cond_wait(&s->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void split_for(struct pool *p, int64_t pieces, struct split *s)
{
    int64_t most;

    s->helpers_max = (int)MIN((int64_t)p->count, pieces - 1);
    /* No more pieces than three a thread, as long as they are not too long for
     * others to wait for. */
    most = 3 * (s->helpers_max + 1);
    if (pieces > most)
        s->grain = MIN((s->n + most - 1) / most, s->grain * GRAIN_MAX);
    pthread_cond_init(&s->done, NULL);
    split_open(p, s);
    split_work(s, NULL);
    split_close(p, s);
    pthread_cond_destroy(&s->done);
}

void pool_for(struct pool *p, int64_t n, int64_t grain,
              void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    int64_t pieces = grain > 0 ? (n + grain - 1) / grain : 1;

    if (n <= 0)
        return;
    if (!p || pieces <= 1)
        fn(arg, 0, n);
    else
        split_for(
            p, pieces,
            &(struct split){ .n = n, .grain = grain, .fn = fn, .arg = arg });
}
