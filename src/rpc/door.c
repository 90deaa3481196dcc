#include "rpc/door.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "rpc/lane.h"

struct door_guest {
    struct door_guest *prev, *next; /* in the shard's list */
    struct shard *shard;
    struct loop_watch watch;
    struct loop_timer late;
};

/* Its socket, which is the caller's now. */
static int leave(struct door_guest *g)
{
    struct shard *sh = g->shard;
    int fd = g->watch.fd;

    loop_watch_del(sh->loop, &g->watch);
    loop_timer_del(sh->loop, &g->late);
    if (g->prev)
        g->prev->next = g->next;
    else
        sh->guests = g->next;
    if (g->next)
        g->next->prev = g->prev;
    mem_free(g);
    return fd;
}

static void on_late(struct loop_timer *timer)
{
    close(leave(CONTAINER(timer, struct door_guest, late)));
}

static void on_word(struct loop_watch *watch, uint32_t events)
{
    struct door_guest *g = CONTAINER(watch, struct door_guest, watch);
    struct shard *sh = g->shard;
    char first;
    ssize_t n = recv(watch->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && !(events & (EPOLLERR | EPOLLHUP)))
        return;
    if (n <= 0)
        close(leave(g));
    else if (first == LANE_MAGIC[0])
        sh->config->lane(sh->loop, leave(g), sh->config->lane_arg);
    else
        shard_accept_h2(sh, leave(g));
}

void door_accept(struct shard *sh, int fd)
{
    struct door_guest *g = MEM_NEW(struct door_guest);
    struct status st;

    g->shard = sh;
    g->watch = (struct loop_watch){ .fd = fd, .ready = on_word };
    g->late.fire = on_late;
    if (loop_watch_add(sh->loop, &g->watch, EPOLLIN, &st)) {
        close(fd);
        mem_free(g);
        return;
    }
    g->next = sh->guests;
    if (g->next)
        g->next->prev = g;
    sh->guests = g;
    loop_timer_set(sh->loop, &g->late, loop_now_ns(sh->loop) + SHARD_HELLO_NS);
}

void door_close(struct shard *sh)
{
    while (sh->guests)
        close(leave(sh->guests));
}
