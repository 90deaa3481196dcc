/*
 * The C API of muster. Compiles alone, as C11 and as C++.
 */
#ifndef MUSTER_MUSTER_H
#define MUSTER_MUSTER_H

#include "muster/api.h"
#include "muster/cluster.h"
#include "muster/server.h"
#include "muster/session.h"
#include "muster/status.h"
#include "muster/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
MST_API const char *mst_version(void);
/* "INVALID_ARGUMENT" for MST_INVALID_ARGUMENT. */
MST_API const char *mst_code_name(enum mst_code code);

#ifdef __cplusplus
}
#endif
#endif
