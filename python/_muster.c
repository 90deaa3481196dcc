/*
 * The extension: a type Server over the C API's mst_server, and the functions
 * of cluster.c.
 * What is Python's to do (kinds of clusters, classes of errors) is done in
 * Python, in muster/__init__.py.
 *
 * Only the stable ABI is used: one file for every Python from 3.8 on. It links
 * the library statically, so that the package is a folder with two files.
 *
 * The interpreter's lock is released wherever a call may wait. The server's
 * threads never touch Python. A server that runs when its object goes is kept
 * running, as TensorFlow's is: the program may know its target by then.
 */
#include "_muster.h"

/* How often join() looks whether a signal has come. */
#define SLICE_MS 100

struct server_object {
    PyObject ob_base;
    mst_server *server;
};

static PyObject *error_type; /* _muster.Error(code, text) */

PyObject *muster_fail(const struct mst_error *error)
{
    PyObject *args = Py_BuildValue("(is)", (int)error->code, error->message);

    if (args) {
        PyErr_SetObject(error_type, args);
        Py_DECREF(args);
    }
    return NULL;
}

static mst_server *server_of(PyObject *self)
{
    return ((struct server_object *)self)->server;
}

static PyObject *server_create(PyTypeObject *type, PyObject *args,
                               PyObject *kwargs)
{
    struct mst_server_opts opts;
    struct mst_error error;
    enum mst_code code;
    const char *def;
    mst_server *server;
    Py_ssize_t len;
    allocfunc alloc;
    PyObject *self;

    if (!PyArg_ParseTuple(args, "y#zzi:Server", &def, &len, &opts.state_dir,
                          &opts.job_id, &opts.lease_s))
        return NULL;
    Py_BEGIN_ALLOW_THREADS code =
        mst_server_new_opts(def, (size_t)len, &opts, &server, &error);
    Py_END_ALLOW_THREADS if (code) return muster_fail(&error);
    alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    self = alloc(type, 0);
    if (self)
        ((struct server_object *)self)->server = server;
    else
        mst_server_free(server);
    return self;
}

/* One that nobody can reach, never started or stopped, has no use. */
static void server_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    mst_server *server = server_of(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    if (server && mst_server_wait(server, 0)) {
        Py_BEGIN_ALLOW_THREADS mst_server_free(server);
        Py_END_ALLOW_THREADS
    }
    release(self);
    Py_DECREF(type);
}

static PyObject *server_start(PyObject *self, PyObject *unused)
{
    struct mst_error error;
    enum mst_code code;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS code = mst_server_start(server_of(self), &error);
    Py_END_ALLOW_THREADS if (code) return muster_fail(&error);
    Py_RETURN_NONE;
}

static PyObject *server_join(PyObject *self, PyObject *unused)
{
    int over;

    (void)unused;
    do {
        Py_BEGIN_ALLOW_THREADS over =
            mst_server_wait(server_of(self), SLICE_MS);
        Py_END_ALLOW_THREADS if (PyErr_CheckSignals()) return NULL;
    } while (!over);
    Py_RETURN_NONE;
}

static PyObject *server_stop(PyObject *self, PyObject *args)
{
    int grace_ms;

    if (!PyArg_ParseTuple(args, "i:stop", &grace_ms))
        return NULL;
    Py_BEGIN_ALLOW_THREADS mst_server_stop(server_of(self), grace_ms);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *server_target(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(mst_server_target(server_of(self)));
}

static PyObject *server_port(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(mst_server_port(server_of(self)));
}

static PyMethodDef server_methods[] = {
    { "start", server_start, METH_NOARGS, "start()" },
    { "join", server_join, METH_NOARGS, "join()" },
    { "stop", server_stop, METH_VARARGS, "stop(grace_ms)" },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef server_getset[] = {
    { "target", server_target, NULL, "grpc://HOST:PORT", NULL },
    { "port", server_port, NULL, "where it listens", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot server_slots[] = {
    { Py_tp_doc,
      "Server(server_def, state_dir, job_id, lease_s): one task, from a "
      "serialized ServerDef" },
    { Py_tp_new, server_create },
    { Py_tp_dealloc, server_dealloc },
    { Py_tp_methods, server_methods },
    { Py_tp_getset, server_getset },
    { 0, NULL },
};

static PyType_Spec server_spec = {
    .name = "muster._muster.Server",
    .basicsize = sizeof(struct server_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = server_slots,
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "muster._muster",
    .m_doc = "The C library of muster.",
    .m_size = -1,
    .m_methods = cluster_methods,
};

static int fill(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&server_spec);

    if (!type || PyModule_AddObject(module, "Server", type))
        return -1;
    error_type = PyErr_NewException("muster._muster.Error", NULL, NULL);
    if (!error_type)
        return -1;
    Py_INCREF(error_type);
    if (PyModule_AddObject(module, "Error", error_type))
        return -1;
    return PyModule_AddStringConstant(module, "version", mst_version());
}

PyMODINIT_FUNC PyInit__muster(void)
{
    PyObject *module = PyModule_Create(&module_def);

    if (module && fill(module)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
