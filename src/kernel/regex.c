/*
 * A pattern's tree becomes a program; a machine with many threads runs it over
 * the text (Thompson's construction, Pike's machine). Threads stand in the
 * order of their priority; each instruction has at most one thread at a place
 * of the text, the one of highest priority, so the work at a place is bounded
 * by the program. The first thread that arrives cuts off those behind it.
 */
#include "kernel/regex.h"

#include <string.h>

#include "base/mem.h"

#define PATTERN_MAX 100000
#define PROGRAM_MAX 20000
#define GROUPS_MAX  10 /* that a match reports: \0 to \9 */

enum inst_op {
    INST_CLASS,
    INST_SPLIT, /* a thread more: x first, then y */
    INST_JUMP,
    INST_SAVE,
    INST_ASSERT,
    INST_MATCH,
};

struct inst {
    enum inst_op op;
    int x, y;
    const struct regex_node *class;
};

struct regex {
    struct arena arena;
    struct inst *inst;
    int count, room;
    int groups;
};

/* ---- from the tree to the program ---- */

static int emit(struct regex *re, enum inst_op op, int x, int y)
{
    if (re->count <= PROGRAM_MAX)
        *MEM_PUSH(re->inst, re->count, re->room) =
            (struct inst){ .op = op, .x = x, .y = y };
    return MIN(re->count - 1, PROGRAM_MAX);
}

/* A choice between the next instruction and one that is not known yet. */
static int emit_choice(struct regex *re)
{
    int at = emit(re, INST_SPLIT, 0, 0);

    re->inst[at].x = at + 1;
    return at;
}

static void choice_else(struct regex *re, int at, int other, bool lazy)
{
    struct inst *i = &re->inst[at];

    i->y = other;
    if (lazy) {
        i->y = i->x;
        i->x = other;
    }
}

static bool nullable(const struct regex_node *n)
{
    switch (n->kind) {
    case REGEX_CLASS:
        return false;
    case REGEX_GROUP:
        return nullable(n->sub);
    case REGEX_REPEAT:
        return n->min == 0 || nullable(n->sub);
    case REGEX_CAT:
        for (const struct regex_node *s = n->sub; s; s = s->next)
            if (!nullable(s))
                return false;
        return true;
    case REGEX_ALT:
        for (const struct regex_node *s = n->sub; s; s = s->next)
            if (nullable(s))
                return true;
        return false;
    default:
        return true;
    }
}

static void compile(struct regex *re, const struct regex_node *n);

/* sub+ */
static void compile_plus(struct regex *re, const struct regex_node *n)
{
    int start = re->count, at;

    compile(re, n->sub);
    at = emit(re, INST_SPLIT, start, 0);
    re->inst[at].x = start;
    choice_else(re, at, re->count, n->lazy);
}

/* sub*; what can be empty as (sub+)?, or priorities would come out wrong. */
static void compile_star(struct regex *re, const struct regex_node *n)
{
    int at = emit_choice(re);

    if (nullable(n->sub)) {
        compile_plus(re, n);
    } else {
        compile(re, n->sub);
        emit(re, INST_JUMP, at, 0);
    }
    choice_else(re, at, re->count, n->lazy);
}

/* (sub(sub…)?)?, `times` deep. */
static void compile_optional(struct regex *re, const struct regex_node *n,
                             int times)
{
    int *choice = mem_array((size_t)MAX(times, 1), sizeof(int));

    for (int i = 0; i < times; i++) {
        choice[i] = emit_choice(re);
        compile(re, n->sub);
    }
    for (int i = 0; i < times; i++)
        choice_else(re, choice[i], re->count, n->lazy);
    mem_free(choice);
}

static void compile_repeat(struct regex *re, const struct regex_node *n)
{
    if (n->max < 0 && n->min == 0) {
        compile_star(re, n);
        return;
    }
    for (int i = 0; i < n->min - (n->max < 0); i++)
        compile(re, n->sub);
    if (n->max < 0)
        compile_plus(re, n);
    else
        compile_optional(re, n, n->max - n->min);
}

static void compile_alt(struct regex *re, const struct regex_node *n)
{
    int ends[2] = { -1, -1 }; /* a chain of jumps to the end */

    for (const struct regex_node *s = n->sub; s; s = s->next) {
        int at = s->next ? emit_choice(re) : -1;

        compile(re, s);
        if (!s->next)
            break;
        ends[0] = emit(re, INST_JUMP, ends[1], 0);
        ends[1] = ends[0];
        choice_else(re, at, re->count, false);
    }
    for (int at = ends[1]; at >= 0;) {
        int before = re->inst[at].x;

        re->inst[at].x = re->count;
        at = before;
    }
}

static void compile(struct regex *re, const struct regex_node *n)
{
    int at;

    if (re->count > PROGRAM_MAX)
        return;
    switch (n->kind) {
    case REGEX_CLASS:
        at = emit(re, INST_CLASS, 0, 0);
        re->inst[at].class = n;
        break;
    case REGEX_CAT:
        for (const struct regex_node *s = n->sub; s; s = s->next)
            compile(re, s);
        break;
    case REGEX_ALT:
        compile_alt(re, n);
        break;
    case REGEX_REPEAT:
        compile_repeat(re, n);
        break;
    case REGEX_GROUP:
        emit(re, INST_SAVE, 2 * n->number, 0);
        compile(re, n->sub);
        emit(re, INST_SAVE, 2 * n->number + 1, 0);
        break;
    case REGEX_ASSERT:
        emit(re, INST_ASSERT, n->number, 0);
        break;
    case REGEX_EMPTY:
        break;
    }
}

enum mst_code regex_new(const char *pattern, size_t len, struct regex **ret,
                        struct status *st)
{
    struct regex *re = MEM_NEW(struct regex);
    struct regex_node *tree;
    enum mst_code rc;

    arena_init(&re->arena);
    if (len > PATTERN_MAX)
        rc = status_set(st, MST_INVALID_ARGUMENT,
                        "pattern too large - compile failed");
    else
        rc = regex_parse(pattern, len, &re->arena, &tree, &re->groups, st);
    if (!rc) {
        compile(re, tree);
        emit(re, INST_MATCH, 0, 0);
        if (re->count > PROGRAM_MAX)
            rc = status_set(st, MST_INVALID_ARGUMENT,
                            "pattern too large - compile failed");
    }
    if (rc)
        regex_free(re);
    else
        *ret = re;
    return rc;
}

void regex_free(struct regex *re)
{
    if (!re)
        return;
    mem_free(re->inst);
    arena_done(&re->arena);
    mem_free(re);
}

int regex_groups(const struct regex *re)
{
    return re->groups;
}

/* ---- the machine ---- */

struct thread {
    int pc;
    int64_t span[2 * GROUPS_MAX];
};

/* Threads at one place of the text, and which instructions have one. */
struct threads {
    struct thread *thread;
    int count;
    uint32_t *seen, turn; /* seen[pc] == turn: there is one */
};

/* A saved place that is to be had back. */
struct undo {
    int slot;
    int64_t old;
};

struct regex_run {
    const struct regex *re;
    const char *text;
    size_t len;
    int slots; /* of span[] that are wanted */
    struct threads list[2];
    int *stack; /* of instructions to be followed */
    struct undo *undo;
};

static bool is_word(const struct regex_run *m, size_t at)
{
    unsigned char c = at < m->len ? (unsigned char)m->text[at] : ' ';

    return (c >= '0' && c <= '9') || c == '_' ||
           ((c | 0x20) >= 'a' && (c | 0x20) <= 'z' && c < 0x80);
}

static bool holds(const struct regex_run *m, int which, size_t at)
{
    bool edge = (at > 0 && is_word(m, at - 1)) != is_word(m, at);

    switch (which) {
    case ASSERT_TEXT_BEGIN:
        return at == 0;
    case ASSERT_TEXT_END:
        return at == m->len;
    case ASSERT_LINE_BEGIN:
        return at == 0 || m->text[at - 1] == '\n';
    case ASSERT_LINE_END:
        return at == m->len || m->text[at] == '\n';
    case ASSERT_WORD:
        return edge;
    default:
        return !edge;
    }
}

static bool class_has(const struct regex_node *n, int32_t rune)
{
    bool inside = false;

    if (rune < 0) /* a byte that is no character */
        return false;
    for (const struct regex_range *r = n->ranges; r && !inside; r = r->next)
        inside = rune >= r->low && rune <= r->high;
    return inside != n->negated;
}

/*
 * Follows what takes no character, from t->pc on, and adds the threads that
 * come out, in order. The stack holds instructions still to be followed; an
 * entry below 0 undoes a save: its slot, and below it the old value's place.
 */
static void follow(struct regex_run *m, struct threads *to, struct thread t,
                   size_t at)
{
    int top = 0, undos = 0;

    m->stack[top++] = t.pc;
    while (top) {
        int pc = m->stack[--top];
        const struct inst *i;

        if (pc < 0) {
            undos--;
            t.span[m->undo[undos].slot] = m->undo[undos].old;
            continue;
        }
        if (to->seen[pc] == to->turn)
            continue;
        to->seen[pc] = to->turn;
        i = &m->re->inst[pc];
        switch (i->op) {
        case INST_JUMP:
            m->stack[top++] = i->x;
            break;
        case INST_SPLIT:
            m->stack[top++] = i->y;
            m->stack[top++] = i->x;
            break;
        case INST_ASSERT:
            if (holds(m, i->x, at))
                m->stack[top++] = pc + 1;
            break;
        case INST_SAVE:
            if (i->x < m->slots) {
                m->undo[undos++] = (struct undo){ i->x, t.span[i->x] };
                t.span[i->x] = (int64_t)at;
                m->stack[top++] = -1;
            }
            m->stack[top++] = pc + 1;
            break;
        default:
            t.pc = pc;
            to->thread[to->count++] = t;
        }
    }
}

struct regex_run *regex_run_new(const struct regex *re)
{
    struct regex_run *m = MEM_NEW(struct regex_run);
    size_t n = (size_t)re->count;

    m->re = re;
    for (int i = 0; i < 2; i++) {
        m->list[i].thread = mem_array(n, sizeof(struct thread));
        m->list[i].seen = mem_array(n, sizeof(uint32_t));
    }
    m->stack = mem_array(3 * n + 4, sizeof(int));
    m->undo = mem_array(n + 1, sizeof(*m->undo));
    return m;
}

void regex_run_free(struct regex_run *m)
{
    for (int i = 0; i < 2; i++) {
        mem_free(m->list[i].thread);
        mem_free(m->list[i].seen);
    }
    mem_free(m->stack);
    mem_free(m->undo);
    mem_free(m);
}

static void threads_clear(struct threads *t)
{
    t->count = 0;
    if (!++t->turn) /* round: the marks of long ago must not count */
        t->turn = 1;
}

static struct thread new_thread(size_t at)
{
    struct thread t = { .pc = 0 };

    memset(t.span, 0xff, sizeof(t.span)); /* -1 everywhere */
    t.span[0] = (int64_t)at;
    return t;
}

struct search {
    bool anchored; /* the match is all of the text */
    bool found;
    int64_t *span;
};

/* Lets the threads take the character at `at`, of n bytes. True when one of
 * them has arrived; those behind it are given up. */
static bool advance(struct regex_run *m, struct search *s, struct threads *now,
                    struct threads *next, size_t at, int32_t rune, int n)
{
    for (int i = 0; i < now->count; i++) {
        struct thread *t = &now->thread[i];
        const struct inst *in = &m->re->inst[t->pc];

        if (in->op == INST_MATCH && (!s->anchored || at == m->len)) {
            t->span[1] = (int64_t)at;
            memcpy(s->span, t->span, (size_t)m->slots * sizeof(*s->span));
            return true;
        }
        if (in->op == INST_CLASS && at < m->len && class_has(in->class, rune)) {
            struct thread step = *t;

            step.pc++;
            follow(m, next, step, at + (size_t)n);
        }
    }
    return false;
}

/*
 * Runs from `from` on. RE2 knows bytes, not characters: an empty match may lie
 * inside of a character, so threads are begun there, too; they do not get far.
 */
static bool run(struct regex_run *m, size_t from, bool anchored, int64_t *span)
{
    struct threads *now = &m->list[0], *next = &m->list[1], *t;
    struct search s = { .anchored = anchored, .span = span };
    size_t at = from;

    threads_clear(now);
    for (;;) {
        int32_t rune = -1;
        int n = at < m->len ? regex_rune(m->text + at, m->len - at, &rune) : 1;

        if (!s.found && (!anchored || at == from))
            follow(m, now, new_thread(at), at);
        threads_clear(next);
        s.found |= advance(m, &s, now, next, at, rune, n);
        for (int i = 1; i < n && !s.found && !anchored; i++) {
            threads_clear(now);
            follow(m, now, new_thread(at + (size_t)i), at + (size_t)i);
            s.found = advance(m, &s, now, next, at + (size_t)i, -1, 1);
        }
        t = now;
        now = next;
        next = t;
        if (at >= m->len || (!now->count && (s.found || anchored)))
            break;
        at += (size_t)n;
    }
    return s.found;
}

bool regex_match_all(struct regex_run *m, const char *text, size_t len)
{
    int64_t span[2];

    m->text = text;
    m->len = len;
    m->slots = 2;
    return run(m, 0, true, span);
}

bool regex_find(struct regex_run *m, const char *text, size_t len, size_t from,
                int64_t *span, int groups)
{
    m->text = text;
    m->len = len;
    m->slots = 2 * MIN(groups, GROUPS_MAX);
    return run(m, from, false, span);
}
