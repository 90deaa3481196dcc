/* What the files of the extension share. */
#ifndef PYTHON_MUSTER_H
#define PYTHON_MUSTER_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>

#include "muster/muster.h"

/* Raises _muster.Error(code, text) and returns NULL. */
PyObject *muster_fail(const struct mst_error *error);

/* Functions of the module, with a row of nothing at the end. */
extern PyMethodDef cluster_methods[];

#endif
