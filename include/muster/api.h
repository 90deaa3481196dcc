/*
 * What all headers of the C API need: how a function is declared, and how one
 * says what went wrong.
 */
#ifndef MUSTER_API_H
#define MUSTER_API_H

#include "muster/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MST_API __attribute__((visibility("default")))
#else
#define MST_API
#endif

/* The caller's; filled when a call fails, and else left as it was. */
struct mst_error {
    enum mst_code code;
    char message[2040]; /* for a person */
};

#ifdef __cplusplus
}
#endif
#endif
