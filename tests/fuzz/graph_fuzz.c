/* A GraphDef of whatever bytes, compiled and run. */
#include "run_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_graph(data, size);
    return 0;
}
