/*
 * A resolve has two users, the loop and the thread that looks the name up. The
 * loop may lose interest at any time, and may itself be gone when the thread
 * comes back; so the thread looks under a lock whether it is still wanted, and
 * else frees the resolve itself.
 */
#include "io/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"

struct resolve {
    struct loop_task task;
    struct loop *loop; /* NULL when cancelled; under `lock` */
    struct addr_name name;
    resolve_fn *done;
    void *arg;
    const char *error;
    int count;
    struct addr addrs[RESOLVE_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void look_up(struct resolve *r)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    int error = getaddrinfo(r->name.host, NULL, &hints, &found);

    if (error) {
        r->error = gai_strerror(error);
        return;
    }
    for (struct addrinfo *a = found; a && r->count < RESOLVE_MAX;
         a = a->ai_next) {
        struct addr *to = &r->addrs[r->count++];

        memcpy(&to->room, a->ai_addr, a->ai_addrlen);
        to->len = a->ai_addrlen;
        addr_set_port(to, r->name.port);
    }
    freeaddrinfo(found);
}

static void *resolve_main(void *arg)
{
    struct resolve *r = arg;

    look_up(r);
    pthread_mutex_lock(&lock);
    if (r->loop)
        loop_post(r->loop, &r->task);
    else
        mem_free(r);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void deliver(struct loop_task *task)
{
    struct resolve *r = CONTAINER(task, struct resolve, task);
    bool wanted;

    pthread_mutex_lock(&lock);
    wanted = r->loop != NULL;
    pthread_mutex_unlock(&lock);
    if (wanted)
        r->done(r->arg, r->addrs, r->count, r->error);
    mem_free(r);
}

static bool start_thread(struct resolve *r)
{
    pthread_attr_t attr;
    pthread_t thread;
    int error;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    error = thread_start(&thread, &attr, resolve_main, r);
    pthread_attr_destroy(&attr);
    return !error;
}

struct resolve *resolve_start(struct loop *loop, const struct addr_name *name,
                              resolve_fn *done, void *arg)
{
    struct resolve *r = MEM_NEW(struct resolve);

    r->task.run = deliver;
    r->loop = loop;
    r->name = *name;
    r->done = done;
    r->arg = arg;
    if (addr_numeric(name, &r->addrs[0]))
        r->count = 1;
    else if (start_thread(r))
        return r;
    else
        r->error = "no thread could be started";
    loop_post(loop, &r->task);
    return r;
}

void resolve_cancel(struct resolve *r)
{
    pthread_mutex_lock(&lock);
    r->loop = NULL;
    pthread_mutex_unlock(&lock);
}
