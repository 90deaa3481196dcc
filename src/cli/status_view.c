#include "cli/status_view.h"

#include "api/cluster_call.h"
#include "base/clock.h"
#include "base/mem.h"

/* For a member to say how it is: who is slower is as good as silent. */
#define MEMBER_MS 1000

static enum mst_code load_list(struct status_view *v,
                               const struct targets *targets,
                               uint64_t timeout_ms, struct status *st)
{
    Muster__ListRequest rq = MUSTER__LIST_REQUEST__INIT;
    struct cluster_call call = { .path = CLUSTER_CALL_PATH(List),
                                 .request = &rq.base,
                                 .answers =
                                     &muster__list_response__descriptor };

    for (int i = 0; i < targets->count; i++) {
        call.target = targets->at[i];
        if (!cluster_call_one(&call, timeout_ms)) {
            v->target = call.target;
            v->list = call.answer;
            return MST_OK;
        }
        if (!targets_try_next(call.status.code))
            break;
    }
    return status_copy(st, &call.status);
}

static void take_answer(struct status_row *row, const struct cluster_call *c)
{
    row->kind = STATUS_NO_ANSWER;
    if (!c->status.code) {
        row->kind = STATUS_MUSTER;
        row->says = c->answer;
    } else if (c->status.code == MST_UNIMPLEMENTED) {
        row->kind = STATUS_TENSORFLOW;
    }
    /* What the server does not know we may have found out. */
    if (row->kind != STATUS_NO_ANSWER &&
        row->state == MUSTER__MEMBER__STATE__UNKNOWN)
        row->state = MUSTER__MEMBER__STATE__ALIVE;
}

/* Those that are gone are not asked: it would take the whole deadline to learn
 * that they are. */
static void ask_members(struct status_view *v)
{
    Muster__StatusRequest rq = MUSTER__STATUS_REQUEST__INIT;
    struct cluster_call *calls = mem_array(v->count, sizeof(*calls));
    struct status_row **rows = mem_array(v->count, sizeof(struct status_row *));
    size_t n = 0;

    for (size_t i = 0; i < v->count; i++) {
        if (!*v->rows[i].member->address ||
            v->rows[i].state == MUSTER__MEMBER__STATE__GONE)
            continue;
        rows[n] = &v->rows[i];
        calls[n++] = (struct cluster_call){
            .target = v->rows[i].member->address,
            .path = CLUSTER_CALL_PATH(Status),
            .request = &rq.base,
            .answers = &muster__status_response__descriptor,
        };
    }
    cluster_call_all(calls, n, MEMBER_MS);
    for (size_t i = 0; i < n; i++)
        take_answer(rows[i], &calls[i]);
    mem_free(calls);
    mem_free(rows);
}

enum mst_code status_view_load(struct status_view *v,
                               const struct targets *targets, bool all,
                               uint64_t timeout_ms, struct status *st)
{
    *v = (struct status_view){ 0 };
    if (load_list(v, targets, timeout_ms, st))
        return st->code;
    v->rows = mem_array(v->list->n_members, sizeof(*v->rows));
    for (size_t i = 0; i < v->list->n_members; i++) {
        const Muster__Member *m = v->list->members[i];

        if (*m->address || all)
            v->rows[v->count++] =
                (struct status_row){ .member = m, .state = m->state };
    }
    ask_members(v);
    v->now_ms = clock_wall_us() / 1000;
    return MST_OK;
}

void status_view_done(struct status_view *v)
{
    for (size_t i = 0; i < v->count; i++)
        control_free(v->rows[i].says);
    mem_free(v->rows);
    control_free(v->list);
    *v = (struct status_view){ 0 };
}
