#include "io/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define PAGE         ((size_t)4096)
#define BLOCKS_MAX   32 /* of a segment */
#define SEGMENTS_MAX 4096
#define SEALS        (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

_Static_assert(BLOCKS_MAX * sizeof(atomic_uint) <= PAGE,
               "the table has one page");

static size_t bytes_of(uint32_t count, uint64_t room)
{
    return PAGE + (size_t)count * (size_t)room;
}

static uint8_t *block_at(uint8_t *base, uint32_t index, uint64_t room)
{
    return base + PAGE + index * room;
}

/* ---- what all senders of the process may have ---- */

static atomic_size_t made, made_max;

void shm_limit(size_t bytes)
{
    atomic_store(&made_max, bytes);
}

static bool may_make(size_t bytes)
{
    size_t max = atomic_load(&made_max);

    if (!max) {
        max = (size_t)sysconf(_SC_PHYS_PAGES) * PAGE / 4;
        atomic_store(&made_max, max);
    }
    if (bytes > max || atomic_load(&made) > max - bytes)
        return false;
    atomic_fetch_add(&made, bytes);
    return true;
}

/* ---- sending ---- */

struct out_segment {
    uint8_t *base;
    atomic_uint *theirs; /* by block, in the segment's first page */
    uint64_t room;
    uint32_t count;
    uint32_t touched; /* blocks that were ever used: only these have pages */
};

struct shm_out {
    pthread_mutex_t lock;
    struct out_segment *segments; /* under lock */
    uint32_t count, cap;
    size_t made;
};

struct shm_out *shm_out_new(void)
{
    struct shm_out *o = MEM_NEW(struct shm_out);

    pthread_mutex_init(&o->lock, NULL);
    return o;
}

void shm_out_free(struct shm_out *o)
{
    if (!o)
        return;
    for (uint32_t i = 0; i < o->count; i++)
        munmap(o->segments[i].base,
               bytes_of(o->segments[i].count, o->segments[i].room));
    atomic_fetch_sub(&made, o->made);
    mem_free(o->segments);
    pthread_mutex_destroy(&o->lock);
    mem_free(o);
}

/* Eight sizes a power of two, in whole pages. */
static uint64_t room_for(size_t size)
{
    size_t step = PAGE;

    while (step * 16 <= size)
        step *= 2;
    return (size + step - 1) & ~(step - 1);
}

static uint32_t count_for(uint64_t room)
{
    return room >= 4 << 20 ? 2 : room >= 256 << 10 ? 8 : BLOCKS_MAX;
}

/* Pages come when they are first written, so a segment costs nothing yet. */
static bool segment_new(struct out_segment *s, int *ret_fd)
{
    size_t bytes = bytes_of(s->count, s->room);
    void *base = MAP_FAILED;
    int fd = memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return false;
    if (!ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, SEALS))
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        close(fd);
        return false;
    }
    s->base = base;
    s->theirs = base;
    *ret_fd = fd;
    return true;
}

/* Under lock: a block of a segment that the reader let go of, or that was
 * never used. */
static bool take_from(struct shm_out *o, struct out_segment *s,
                      struct shm_block *ret)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (i < s->touched) {
            if (atomic_load_explicit(&s->theirs[i], memory_order_acquire))
                continue;
        } else if (may_make(s->room)) {
            o->made += s->room;
            s->touched = i + 1;
        } else {
            return false;
        }
        atomic_store_explicit(&s->theirs[i], 1, memory_order_relaxed);
        *ret = (struct shm_block){ .segment = (uint32_t)(s - o->segments),
                                   .index = i,
                                   .data = block_at(s->base, i, s->room) };
        return true;
    }
    return false;
}

bool shm_out_take(struct shm_out *o, size_t size, struct shm_block *ret,
                  struct shm_segment *ret_new)
{
    uint64_t room = room_for(size);
    struct out_segment s = { .room = room, .count = count_for(room) };
    bool taken = false;

    ret_new->fd = -1;
    pthread_mutex_lock(&o->lock);
    for (uint32_t i = 0; i < o->count && !taken; i++)
        taken =
            o->segments[i].room == room && take_from(o, &o->segments[i], ret);
    if (!taken && o->count < SEGMENTS_MAX && segment_new(&s, &ret_new->fd)) {
        ret_new->count = s.count;
        ret_new->room = room;
        *MEM_PUSH(o->segments, o->count, o->cap) = s;
        taken = take_from(o, &o->segments[o->count - 1], ret);
        if (!taken) {
            munmap(s.base, bytes_of(s.count, room));
            close(ret_new->fd);
            ret_new->fd = -1;
            o->count--;
        }
    }
    pthread_mutex_unlock(&o->lock);
    return taken;
}

/* ---- receiving ---- */

/* A block as a buffer. There is one of each, so it needs no memory. */
struct in_block {
    struct buffer b;
    struct in_segment *segment;
    atomic_bool used;
};

/* Counted: by the shm_in, and by every block in use. */
struct in_segment {
    atomic_uint refs;
    uint8_t *base;
    atomic_uint *theirs;
    uint64_t room;
    uint32_t count;
    struct in_block blocks[];
};

struct shm_in {
    struct in_segment **segments;
    uint32_t count, cap;
};

struct shm_in *shm_in_new(void)
{
    return MEM_NEW(struct shm_in);
}

static void segment_unref(struct in_segment *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    munmap(s->base, bytes_of(s->count, s->room));
    mem_free(s);
}

void shm_in_free(struct shm_in *in)
{
    if (!in)
        return;
    for (uint32_t i = 0; i < in->count; i++)
        segment_unref(in->segments[i]);
    mem_free(in->segments);
    mem_free(in);
}

static bool is_sound(const struct shm_segment *s)
{
    struct stat info;

    return s->count && s->count <= BLOCKS_MAX && s->room &&
           s->room <= SIZE_MAX / 2 / BLOCKS_MAX && s->room % PAGE == 0 &&
           !fstat(s->fd, &info) &&
           (size_t)info.st_size >= bytes_of(s->count, s->room) &&
           fcntl(s->fd, F_GET_SEALS) >= 0 &&
           (fcntl(s->fd, F_GET_SEALS) & F_SEAL_SHRINK);
}

bool shm_in_add(struct shm_in *in, const struct shm_segment *from)
{
    size_t bytes = bytes_of(from->count, from->room);
    struct in_segment *s;
    void *base = MAP_FAILED;

    if (in->count < SEGMENTS_MAX && is_sound(from))
        base =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, from->fd, 0);
    close(from->fd);
    if (base == MAP_FAILED)
        return false;
    s = mem_new(sizeof(*s) + from->count * sizeof(s->blocks[0]));
    atomic_init(&s->refs, 1);
    s->base = base;
    s->theirs = base;
    s->room = from->room;
    s->count = from->count;
    *MEM_PUSH(in->segments, in->count, in->cap) = s;
    return true;
}

static void block_release(struct buffer *b)
{
    struct in_block *k = CONTAINER(b, struct in_block, b);
    struct in_segment *s = k->segment;

    atomic_store(&k->used, false);
    /* From here on the sender may write it. */
    atomic_store_explicit(&s->theirs[k - s->blocks], 0, memory_order_release);
    segment_unref(s);
}

struct buffer *shm_in_buffer(struct shm_in *in, uint32_t segment,
                             uint32_t index, size_t size)
{
    struct in_segment *s;
    struct in_block *k;

    if (segment >= in->count || index >= in->segments[segment]->count ||
        size > in->segments[segment]->room)
        return NULL;
    s = in->segments[segment];
    k = &s->blocks[index];
    if (atomic_exchange(&k->used, true))
        return NULL;
    atomic_fetch_add(&s->refs, 1);
    k->segment = s;
    k->b = (struct buffer){ .data = block_at(s->base, index, s->room),
                            .size = size,
                            .release = block_release };
    atomic_init(&k->b.refs, 1);
    return &k->b;
}
