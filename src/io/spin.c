#include "io/spin.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define US_DEFAULT 200
#define US_LIMIT   1000
#define GAP_LIMIT  ((uint64_t)1000000)
#define CHECK_NS   ((uint64_t)500000)
#define CALM_NS    ((uint64_t)20000000)
#define NS_BUSY    ((uint64_t)50000)

/* The cores that this process may use; one means that polling keeps the peer
 * from answering. */
static int cores_usable(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set))
        return (int)sysconf(_SC_NPROCESSORS_ONLN);
    return CPU_COUNT(&set);
}

static int us_wanted(int us_max)
{
    const char *text = getenv("MUSTER_SPIN_US");

    if (us_max < 0)
        return 0;
    if (us_max > 0)
        return MIN(us_max, US_LIMIT);
    if (text && *text)
        return MAX(0, MIN(atoi(text), US_LIMIT));
    return US_DEFAULT;
}

void spin_init(struct spin *s, int us_max)
{
    *s = (struct spin){
        .gap_ns = GAP_LIMIT,
        .cores = (int)sysconf(_SC_NPROCESSORS_ONLN),
        .load_fd = -1,
    };
    if (cores_usable() < 2)
        return;
    s->ns_max = (uint64_t)us_wanted(us_max) * 1000;
    if (s->ns_max)
        s->load_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
}

void spin_done(struct spin *s)
{
    if (s->load_fd >= 0)
        close(s->load_fd);
    s->load_fd = -1;
}

/* More threads want to run than there are cores. This loop is one of them. */
static bool ask_crowded(const struct spin *s)
{
    char text[64];
    ssize_t n = s->load_fd < 0 ? 0 : pread(s->load_fd, text, 63, 0);
    const char *at = text;

    if (n <= 0)
        return false;
    text[n] = '\0';
    /* "0.20 0.18 0.12 running/all last" */
    for (int i = 0; i < 3 && at; i++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    return at && atoi(at) > s->cores;
}

uint64_t spin_budget_ns(struct spin *s, uint64_t now_ns, bool expecting)
{
    uint64_t limit = expecting ? s->ns_max : s->ns_max / 2;

    if (s->gap_ns >= limit)
        return 0;
    if (now_ns - s->ns_check >= CHECK_NS) {
        s->ns_check = now_ns;
        if (ask_crowded(s))
            s->ns_crowded = now_ns;
    }
    if (s->ns_crowded >= s->ns_check)
        return 0;
    if (now_ns - s->ns_crowded < CALM_NS)
        limit = MIN(limit, NS_BUSY);
    if (s->gap_ns >= limit)
        return 0;
    return MIN(limit, 2 * s->gap_ns + 10000);
}

void spin_waited(struct spin *s, uint64_t ns)
{
    s->gap_ns = (3 * s->gap_ns + MIN(ns, GAP_LIMIT)) / 4;
}
