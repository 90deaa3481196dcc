/* A view of a job as a table for people, and as JSON for programs. */
#ifndef CLI_STATUS_PRINT_H
#define CLI_STATUS_PRINT_H

#include <stdio.h>

#include "cli/status_view.h"

void status_print_table(const struct status_view *v, bool colour, FILE *out);
/* One object; `line`: in one line. */
void status_print_json(const struct status_view *v, bool line, FILE *out);

#endif
