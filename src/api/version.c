/* The part of the public API that says what it is. */
#include "base/status.h"
#include "muster/muster.h"

const char *mst_version(void)
{
    return MUSTER_VERSION;
}

const char *mst_code_name(enum mst_code code)
{
    return status_name(code);
}
