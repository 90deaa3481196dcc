#include "cli/status_print.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/humane.h"

enum column {
    TASK,
    ADDRESS,
    STATE,
    SINCE,
    ADDED,
    SESSIONS,
    STEPS,
    BYTES_IN,
    BYTES_OUT,
    MEMORY,
    KIND,
    COLUMNS
};

static const struct {
    const char *title;
    bool right; /* numbers, with their ends below each other */
} columns[COLUMNS] = {
    [TASK] = { "TASK", false },      [ADDRESS] = { "ADDRESS", false },
    [STATE] = { "STATE", false },    [SINCE] = { "SINCE", true },
    [ADDED] = { "ADDED", true },     [SESSIONS] = { "SESSIONS", true },
    [STEPS] = { "STEPS/S", true },   [BYTES_IN] = { "IN/S", true },
    [BYTES_OUT] = { "OUT/S", true }, [MEMORY] = { "MEMORY", true },
    [KIND] = { "KIND", false },
};

/* Longer texts than these only widen their own line. */
#define CELL_MAX 280

typedef char cells[COLUMNS][CELL_MAX];

static const char *state_name(const struct status_row *row)
{
    if (!*row->member->address)
        return "removed";
    switch (row->state) {
    case MUSTER__MEMBER__STATE__ALIVE:
        return "alive";
    case MUSTER__MEMBER__STATE__GONE:
        return "gone";
    default:
        return "unknown";
    }
}

static const char *kind_name(const struct status_row *row)
{
    static const char *const names[] = { [STATUS_NOT_ASKED] = "-",
                                         [STATUS_NO_ANSWER] = "no answer",
                                         [STATUS_MUSTER] = "muster",
                                         [STATUS_TENSORFLOW] = "tensorflow" };

    return names[row->kind];
}

/* "-" when nothing is known. Clocks of machines differ: a moment that is still
 * to come has just been. */
static void ago(const struct status_view *v, uint64_t when_ms, char *text)
{
    if (when_ms)
        humane_duration(v->now_ms > when_ms ? v->now_ms - when_ms : 0, text);
}

static void fill_says(const Muster__StatusResponse *s, cells c)
{
    snprintf(c[SESSIONS], CELL_MAX, "%u", s->sessions);
    humane_rate(s->steps_per_s, c[STEPS]);
    humane_bytes(s->bytes_in_per_s, c[BYTES_IN]);
    humane_bytes(s->bytes_out_per_s, c[BYTES_OUT]);
    humane_bytes((double)s->memory, c[MEMORY]);
    if (*s->version)
        snprintf(c[KIND], CELL_MAX, "muster %s", s->version);
}

static void fill(const struct status_view *v, const struct status_row *row,
                 cells c)
{
    const Muster__Member *m = row->member;
    bool removed = !*m->address;

    for (int i = 0; i < COLUMNS; i++)
        strcpy(c[i], "-");
    snprintf(c[TASK], CELL_MAX, "%s/%d", m->job, m->task);
    if (!removed)
        snprintf(c[ADDRESS], CELL_MAX, "%s", m->address);
    snprintf(c[STATE], CELL_MAX, "%s", state_name(row));
    ago(v, removed ? m->since_ms : m->state_since_ms, c[SINCE]);
    if (!removed && m->epoch)
        ago(v, m->since_ms, c[ADDED]);
    snprintf(c[KIND], CELL_MAX, "%s", kind_name(row));
    if (row->says)
        fill_says(row->says, c);
    else if (m->sessions)
        snprintf(c[SESSIONS], CELL_MAX, "%u", m->sessions);
}

#define BOLD  "\033[1m"
#define RED   "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

static const char *paint_of(const struct status_row *row)
{
    if (!*row->member->address)
        return "";
    switch (row->state) {
    case MUSTER__MEMBER__STATE__ALIVE:
        return GREEN;
    case MUSTER__MEMBER__STATE__GONE:
        return RED;
    default:
        return "";
    }
}

/* paint is "" for none. Nothing follows the last column, not even blanks. */
static void print_cell(const char *text, int column, int width,
                       const char *paint, FILE *out)
{
    fputs(paint, out);
    if (column == COLUMNS - 1)
        fputs(text, out);
    else if (columns[column].right)
        fprintf(out, "%*s", width, text);
    else
        fprintf(out, "%-*s", width, text);
    fprintf(out, "%s%s", *paint ? PLAIN : "",
            column == COLUMNS - 1 ? "\n" : "  ");
}

static void print_rows(const struct status_view *v, cells *c, const int *width,
                       bool colour, FILE *out)
{
    for (int i = 0; i < COLUMNS; i++)
        print_cell(columns[i].title, i, width[i], colour ? BOLD : "", out);
    for (size_t r = 0; r < v->count; r++)
        for (int i = 0; i < COLUMNS; i++)
            print_cell(c[r][i], i, width[i],
                       colour && i == STATE ? paint_of(&v->rows[r]) : "", out);
}

static void print_summary(const struct status_view *v, FILE *out)
{
    unsigned present = 0, alive = 0, gone = 0;
    const Muster__ListResponse *l = v->list;

    for (size_t i = 0; i < v->count; i++) {
        if (!*v->rows[i].member->address)
            continue;
        present++;
        alive += v->rows[i].state == MUSTER__MEMBER__STATE__ALIVE;
        gone += v->rows[i].state == MUSTER__MEMBER__STATE__GONE;
    }
    fprintf(out, "\n%u task%s, %u alive, %u gone; told by %s/%d, revision %llu",
            present, present == 1 ? "" : "s", alive, gone, l->job, l->task,
            (unsigned long long)l->revision);
    if (*l->state_dir)
        fprintf(out, ", journal %s", l->state_dir);
    fputc('\n', out);
}

void status_print_table(const struct status_view *v, bool colour, FILE *out)
{
    cells *c = mem_array(v->count, sizeof(*c));
    int width[COLUMNS];

    for (int i = 0; i < COLUMNS; i++)
        width[i] = (int)strlen(columns[i].title);
    for (size_t r = 0; r < v->count; r++) {
        fill(v, &v->rows[r], c[r]);
        for (int i = 0; i < COLUMNS; i++)
            width[i] = MAX(width[i], (int)strlen(c[r][i]));
    }
    print_rows(v, c, width, colour, out);
    print_summary(v, out);
    mem_free(c);
}

/* ---- JSON ---- */

static void set_count(json_t *o, const char *key, uint64_t n)
{
    json_object_set_new(o, key, json_integer((json_int_t)n));
}

/* A moment, in ms since 1970; null when it is not known. */
static void set_when(json_t *o, const char *key, uint64_t ms)
{
    json_object_set_new(o, key,
                        ms ? json_integer((json_int_t)ms) : json_null());
}

static void set_says(json_t *o, const Muster__StatusResponse *s)
{
    json_object_set_new(o, "version", json_string(s->version));
    set_when(o, "started_ms", s->started_ms);
    set_count(o, "sessions", s->sessions);
    set_count(o, "master_sessions", s->master_sessions);
    set_count(o, "steps", s->steps);
    json_object_set_new(o, "steps_per_s", json_real(s->steps_per_s));
    set_count(o, "bytes_in", s->bytes_in);
    set_count(o, "bytes_out", s->bytes_out);
    json_object_set_new(o, "bytes_in_per_s", json_real(s->bytes_in_per_s));
    json_object_set_new(o, "bytes_out_per_s", json_real(s->bytes_out_per_s));
    set_count(o, "memory", s->memory);
    set_count(o, "connections", s->connections);
}

static json_t *row_json(const struct status_row *row)
{
    const Muster__Member *m = row->member;
    json_t *o = json_object();

    json_object_set_new(o, "job", json_string(m->job));
    json_object_set_new(o, "task", json_integer(m->task));
    json_object_set_new(o, "address",
                        *m->address ? json_string(m->address) : json_null());
    json_object_set_new(o, "state", json_string(state_name(row)));
    set_when(o, "state_since_ms", m->state_since_ms);
    set_when(o, "heard_ms", m->heard_ms);
    set_when(o, "changed_ms", m->since_ms);
    json_object_set_new(o, "online", json_boolean(m->epoch));
    set_count(o, "sessions_on_asked", m->sessions);
    json_object_set_new(o, "kind",
                        row->kind <= STATUS_NO_ANSWER
                            ? json_null()
                            : json_string(kind_name(row)));
    if (row->says)
        set_says(o, row->says);
    return o;
}

void status_print_json(const struct status_view *v, bool line, FILE *out)
{
    const Muster__ListResponse *l = v->list;
    json_t *o = json_object(), *members = json_array();

    json_object_set_new(o, "asked", json_string(v->target));
    json_object_set_new(o, "job", json_string(l->job));
    json_object_set_new(o, "task", json_integer(l->task));
    json_object_set_new(
        o, "journal", *l->state_dir ? json_string(l->state_dir) : json_null());
    set_count(o, "revision", l->revision);
    set_when(o, "now_ms", v->now_ms);
    for (size_t i = 0; i < v->count; i++)
        json_array_append_new(members, row_json(&v->rows[i]));
    json_object_set_new(o, "members", members);
    json_dumpf(o, out, line ? JSON_COMPACT : JSON_INDENT(2));
    fputc('\n', out);
    json_decref(o);
}
