/*
 * The members of a running job: functions over muster/cluster.h. Each waits
 * without the interpreter's lock.
 */
#include "_muster.h"

/* (changed, reached, missed) */
static PyObject *change_tuple(const struct mst_change *c)
{
    return Py_BuildValue("(NII)", PyBool_FromLong(c->changed), c->reached,
                         c->missed);
}

static PyObject *add_worker(PyObject *module, PyObject *args)
{
    struct mst_change_opts opts = { .job = NULL };
    const char *target, *address;
    unsigned long long timeout_ms;
    struct mst_change change;
    struct mst_error error;
    enum mst_code code;
    int task, replace;

    (void)module;
    if (!PyArg_ParseTuple(args, "sissiK:add_worker", &target, &task, &address,
                          &opts.job, &replace, &timeout_ms))
        return NULL;
    opts.replace = replace;
    opts.timeout_ms = timeout_ms;
    Py_BEGIN_ALLOW_THREADS code =
        mst_cluster_add_worker(target, task, address, &opts, &change, &error);
    Py_END_ALLOW_THREADS return code ? muster_fail(&error)
                                     : change_tuple(&change);
}

static PyObject *remove_worker(PyObject *module, PyObject *args)
{
    struct mst_change_opts opts = { .job = NULL };
    unsigned long long timeout_ms;
    struct mst_change change;
    struct mst_error error;
    enum mst_code code;
    const char *target;
    int task;

    (void)module;
    if (!PyArg_ParseTuple(args, "siszK:remove_worker", &target, &task,
                          &opts.job, &opts.only_at, &timeout_ms))
        return NULL;
    opts.timeout_ms = timeout_ms;
    Py_BEGIN_ALLOW_THREADS code =
        mst_cluster_remove_worker(target, task, &opts, &change, &error);
    Py_END_ALLOW_THREADS return code ? muster_fail(&error)
                                     : change_tuple(&change);
}

/* (job, task, address, state, since_ms, state_since_ms, heard_ms, sessions) */
static PyObject *member_tuple(const struct mst_member *m)
{
    return Py_BuildValue("(sisiKKKI)", m->job, m->task, m->address,
                         (int)m->state, (unsigned long long)m->since_ms,
                         (unsigned long long)m->state_since_ms,
                         (unsigned long long)m->heard_ms, m->sessions);
}

static PyObject *members_list(const struct mst_members *members)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < members->count; i++) {
        PyObject *m = member_tuple(&members->at[i]);

        if (!m || PyList_Append(list, m)) {
            Py_DECREF(list);
            list = NULL;
        }
        Py_XDECREF(m);
    }
    return list;
}

static PyObject *list_members(PyObject *module, PyObject *args)
{
    unsigned long long timeout_ms;
    struct mst_members *members;
    struct mst_error error;
    const char *target;
    enum mst_code code;
    PyObject *list;

    (void)module;
    if (!PyArg_ParseTuple(args, "sK:list_members", &target, &timeout_ms))
        return NULL;
    Py_BEGIN_ALLOW_THREADS code =
        mst_cluster_list(target, timeout_ms, &members, &error);
    Py_END_ALLOW_THREADS if (code) return muster_fail(&error);
    list = members_list(members);
    mst_members_free(members);
    return list;
}

/* (task, address, members) */
static PyObject *join_cluster(PyObject *module, PyObject *args)
{
    struct mst_change_opts opts = { .job = NULL };
    const struct mst_member *self;
    const char *target, *address;
    unsigned long long timeout_ms;
    struct mst_members *members;
    struct mst_error error;
    enum mst_code code;
    PyObject *tuple;

    (void)module;
    if (!PyArg_ParseTuple(args, "sssK:join_cluster", &target, &address,
                          &opts.job, &timeout_ms))
        return NULL;
    opts.timeout_ms = timeout_ms;
    Py_BEGIN_ALLOW_THREADS code =
        mst_cluster_join(target, address, &opts, &members, &self, &error);
    Py_END_ALLOW_THREADS if (code) return muster_fail(&error);
    tuple = Py_BuildValue("(isN)", self->task, self->address,
                          members_list(members));
    mst_members_free(members);
    return tuple;
}

PyMethodDef cluster_methods[] = {
    { "add_worker", add_worker, METH_VARARGS,
      "add_worker(target, task, address, job, replace, timeout_ms)" },
    { "remove_worker", remove_worker, METH_VARARGS,
      "remove_worker(target, task, job, only_at, timeout_ms)" },
    { "join_cluster", join_cluster, METH_VARARGS,
      "join_cluster(target, address, job, timeout_ms)" },
    { "list_members", list_members, METH_VARARGS,
      "list_members(target, timeout_ms)" },
    { NULL, NULL, 0, NULL },
};
