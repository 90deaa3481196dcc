#include "cluster/members.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* Two tasks may claim one address, when two ps did not know of each other. */
struct record {
    struct member m;
    char *address;       /* what m.address is, to be freed */
    struct record *same; /* the next older one with the same address */
};

struct members_job {
    char *name;
    struct record **tasks; /* by number */
    int count, room;
};

void members_init(struct members *t)
{
    *t = (struct members){ 0 };
    map_init(&t->by_address);
}

void members_done(struct members *t)
{
    for (int j = 0; j < t->count; j++) {
        struct members_job *job = &t->jobs[j];

        for (int i = 0; i < job->count; i++) {
            mem_free(job->tasks[i]->address);
            mem_free(job->tasks[i]);
        }
        mem_free(job->tasks);
        mem_free(job->name);
    }
    mem_free(t->jobs);
    map_done(&t->by_address);
}

int member_version_compare(struct member_version a, struct member_version b)
{
    if (a.epoch != b.epoch)
        return a.epoch < b.epoch ? -1 : 1;
    if (a.origin != b.origin)
        return a.origin < b.origin ? -1 : 1;
    return 0;
}

enum mst_code member_check(const struct member *m, struct status *st)
{
    struct cluster_address parts;

    if (!cluster_job_valid(m->job))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "\"%s\" is no name for a job", m->job);
    if (strlen(m->job) > MEMBER_JOB_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "a job's name has at most %d letters, not %zu",
                          MEMBER_JOB_MAX, strlen(m->job));
    if (m->task < 0 || m->task > MEMBER_TASK_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "a task's number is from 0 to %d, not %d",
                          MEMBER_TASK_MAX, m->task);
    if (m->version.epoch > MEMBER_EPOCH_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "no entry has version %" PRIu64, m->version.epoch);
    if (!m->address)
        return MST_OK;
    if (strlen(m->address) > MEMBER_ADDRESS_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "an address has at most %d letters, not %zu",
                          MEMBER_ADDRESS_MAX, strlen(m->address));
    if (cluster_address_split(m->address, &parts, st))
        return st->code;
    if (!parts.port)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "\"%s\" has port 0, where nobody can be reached",
                          m->address);
    return MST_OK;
}

static struct members_job *find_job(const struct members *t, const char *name)
{
    for (int j = 0; j < t->count; j++)
        if (!strcmp(t->jobs[j].name, name))
            return &t->jobs[j];
    return NULL;
}

/* Where the task stands, or would have to stand. */
static int place_of(const struct members_job *job, int task)
{
    int low = 0, high = job->count;

    /* Mostly there are no gaps. */
    if (task >= 0 && task < high && job->tasks[task]->m.task == task)
        return task;
    while (low < high) {
        int mid = low + (high - low) / 2;

        if (job->tasks[mid]->m.task < task)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct record *find(const struct members *t, const char *name, int task)
{
    const struct members_job *job = find_job(t, name);
    int at = job ? place_of(job, task) : 0;

    return job && at < job->count && job->tasks[at]->m.task == task
               ? job->tasks[at]
               : NULL;
}

static struct record *add(struct members *t, const char *name, int task)
{
    struct members_job *job = find_job(t, name);
    struct record *r = MEM_NEW(struct record);
    int at;

    if (!job) {
        job = MEM_PUSH(t->jobs, t->count, t->room);
        *job = (struct members_job){ .name = mem_str(name) };
    }
    at = place_of(job, task);
    (void)MEM_PUSH(job->tasks, job->count, job->room);
    memmove(job->tasks + at + 1, job->tasks + at,
            (size_t)(job->count - 1 - at) * sizeof(*job->tasks));
    job->tasks[at] = r;
    r->m.job = job->name;
    r->m.task = task;
    return r;
}

/* The digest is the exclusive or of these, so each has to be mixed well:
 * otherwise entries that trade places would leave it as it was. */
static uint64_t hash_of(const struct member *m)
{
    const uint64_t numbers[] = { (uint64_t)m->task, m->version.epoch,
                                 m->version.origin, m->address != NULL };
    uint64_t h = hash_str(m->job);

    if (!strcmp(m->job, MEMBER_PS_JOB))
        return 0;
    if (m->version.epoch == MEMBER_EPOCH_FLAGS)
        return hash_bytes(numbers, sizeof(numbers[0]), h);
    h = hash_bytes(numbers, sizeof(numbers), h);
    return m->address ? hash_bytes(m->address, strlen(m->address), h) : h;
}

static bool newer(const struct member *m, const struct member *old)
{
    int order = member_version_compare(m->version, old->version);

    if (m->version.epoch == MEMBER_EPOCH_FLAGS)
        return false;
    if (order)
        return order > 0;
    /* One version, two contents: a writer broke the rules. All tables still
     * have to come to the same end. */
    return strcmp(m->address ? m->address : "",
                  old->address ? old->address : "") > 0;
}

bool members_wants(const struct members *t, const struct member *m)
{
    const struct record *r = find(t, m->job, m->task);

    return !r || newer(m, &r->m);
}

/* Of two with one address: which one members_at() finds. */
static bool before(const struct record *a, const struct record *b)
{
    int order = member_version_compare(a->m.version, b->m.version);

    return order ? order > 0 : a->m.task < b->m.task;
}

static void index_address(struct members *t, struct record *r)
{
    struct record *first = map_get_str(&t->by_address, r->address), *at;

    t->present++;
    if (!first || before(r, first)) {
        r->same = first;
        map_put_str(&t->by_address, r->address, r);
        return;
    }
    for (at = first; at->same && before(at->same, r);)
        at = at->same;
    r->same = at->same;
    at->same = r;
}

static void forget_address(struct members *t, struct record *r)
{
    struct record *at;

    if (!r->address)
        return;
    t->present--;
    at = map_get_str(&t->by_address, r->address);
    if (at != r) {
        while (at->same != r)
            at = at->same;
        at->same = r->same;
    } else if (r->same) {
        map_put_str(&t->by_address, r->address, r->same);
    } else {
        map_take_str(&t->by_address, r->address);
    }
    mem_free(r->address);
    r->same = NULL;
}

bool members_merge(struct members *t, const struct member *m)
{
    struct record *r = find(t, m->job, m->task);
    const char *job;

    if (r && !newer(m, &r->m))
        return false;
    if (r)
        t->digest ^= hash_of(&r->m);
    else
        r = add(t, m->job, m->task);
    forget_address(t, r);
    job = r->m.job;
    r->m = *m;
    r->m.job = job;
    r->m.revision = ++t->revision;
    r->m.address = r->address = m->address ? mem_str(m->address) : NULL;
    if (r->address)
        index_address(t, r);
    t->digest ^= hash_of(&r->m);
    if (m->version.epoch > t->epoch)
        t->epoch = m->version.epoch;
    return true;
}

const struct member *members_get(const struct members *t, const char *job,
                                 int task)
{
    const struct record *r = find(t, job, task);

    return r ? &r->m : NULL;
}

const struct member *members_at(const struct members *t, const char *address)
{
    const struct record *r = map_get_str(&t->by_address, address);

    return r ? &r->m : NULL;
}

int members_next_task(const struct members *t, const char *name)
{
    const struct members_job *job = find_job(t, name);

    return job && job->count ? job->tasks[job->count - 1]->m.task + 1 : 0;
}

const struct member *members_next(const struct members *t,
                                  struct members_walk *at)
{
    while (at->job < t->count) {
        const struct members_job *job = &t->jobs[at->job];

        if (at->task < job->count)
            return &job->tasks[at->task++]->m;
        at->job++;
        at->task = 0;
    }
    return NULL;
}
