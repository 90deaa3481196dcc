#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/fpu.h"
#include "base/mem.h"
#include "base/thread.h"

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct pool_job *first, **last; /* under lock */
    int idle;                       /* under lock */
    bool stopping;                  /* under lock */
    int count;
    pthread_t threads[];
};

static struct pool_job *next_job(struct pool *p)
{
    struct pool_job *job;

    pthread_mutex_lock(&p->lock);
    while (!p->first && !p->stopping) {
        p->idle++;
        pthread_cond_wait(&p->wake, &p->lock);
        p->idle--;
    }
    job = p->first;
    if (job) {
        p->first = job->next;
        if (!p->first)
            p->last = &p->first;
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

void pool_post(struct pool *p, struct pool_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&p->lock);
    *p->last = job;
    p->last = &job->next;
    if (p->idle)
        pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

/*
 * A split loop. The caller and its helpers draw pieces from one counter. A
 * helper that comes when all pieces are gone must still find the loop there,
 * so it is counted, and the last one out frees it.
 */
struct split {
    atomic_llong next;
    atomic_llong left; /* pieces not yet done */
    atomic_int users;
    int64_t n, grain;
    void (*fn)(void *, int64_t, int64_t);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t done;
    struct {
        struct pool_job job;
        struct split *split;
    } helper[];
};

static void split_leave(struct split *s)
{
    if (atomic_fetch_sub(&s->users, 1) != 1)
        return;
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->done);
    mem_free(s);
}

static void split_work(struct split *s)
{
    int64_t begin;

    while ((begin = atomic_fetch_add(&s->next, s->grain)) < s->n) {
        s->fn(s->arg, begin, MIN(begin + s->grain, s->n));
        if (atomic_fetch_sub(&s->left, 1) == 1) {
            pthread_mutex_lock(&s->lock);
            pthread_cond_signal(&s->done);
            pthread_mutex_unlock(&s->lock);
        }
    }
}

static void split_help(struct pool_job *job)
{
    struct split *s = *(struct split **)(job + 1);

    split_work(s);
    split_leave(s);
}

void pool_for(struct pool *p, int64_t n, int64_t grain,
              void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    int64_t pieces = grain > 0 ? (n + grain - 1) / grain : 1;
    struct split *s;
    int helpers;

    if (n <= 0)
        return;
    if (!p || pieces <= 1) {
        fn(arg, 0, n);
        return;
    }
    helpers = (int)MIN((int64_t)p->count, pieces - 1);
    /* No more pieces than three a thread: each costs an atomic operation. */
    if (pieces > 3 * (helpers + 1)) {
        grain = (n + 3 * (helpers + 1) - 1) / (3 * (helpers + 1));
        pieces = (n + grain - 1) / grain;
    }
    s = mem_new(sizeof(*s) + (size_t)helpers * sizeof(s->helper[0]));
    atomic_init(&s->left, pieces);
    atomic_init(&s->users, helpers + 1);
    s->n = n;
    s->grain = grain;
    s->fn = fn;
    s->arg = arg;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->done, NULL);
    for (int i = 0; i < helpers; i++) {
        s->helper[i].job.run = split_help;
        s->helper[i].split = s;
        pool_post(p, &s->helper[i].job);
    }
    split_work(s);
    pthread_mutex_lock(&s->lock);
    while (atomic_load(&s->left))
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
    split_leave(s);
}
