/*
 * `muster version`: what this program is and what it was built with, so that a
 * report of a fault can name it.
 */
#include <jansson.h>
#include <nghttp2/nghttp2.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "cli/command.h"

int version_main(int argc, char **argv)
{
    printf("muster %s\n", MUSTER_VERSION);
    printf("nghttp2 %s, protobuf-c %s, jansson %s, zlib %s\n",
           nghttp2_version(0)->version_str, protobuf_c_version(),
           JANSSON_VERSION, zlibVersion());
    return EXIT_SUCCESS;
}
