/* A user's program: prints the version that it was linked with. Compiled as C
 * and as C++. */
#include <muster/muster.h>
#include <stdio.h>

int main(void)
{
    printf("%s %s\n", mst_version(), mst_code_name(MST_ABORTED));
    return 0;
}
