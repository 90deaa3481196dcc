/*
 * `muster ops`: what the table of ops has, for a person, or as the page
 * docs/ops.md. Everything comes from the records, so neither can be out of
 * date.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"
#include "op/op.h"
#include "tensor/dtype.h"

struct answers {
    bool markdown, help;
};

static const struct option table[] = {
    { "markdown", OPTION_SWITCH, offsetof(struct answers, markdown), NULL,
      "print all of them as the page docs/ops.md" },
    { "help", OPTION_HELP, offsetof(struct answers, help), NULL, "this text" },
    { 0 },
};

static void print_help(FILE *out)
{
    fputs("Usage: muster ops [NAME...]\n"
          "       muster ops --markdown\n\n"
          "Lists the ops that a task can run; of the named ones all that is "
          "known.\n\n",
          out);
    options_help(table, out);
}

/* The types that have a kernel: "float, double"; "any" when all share one. */
static void print_types(const struct op_def *def)
{
    const struct op_kernel *k = def->kernel;

    if (!k || !k->run) {
        fputs("(the executor's)", stdout);
        return;
    }
    for (; k->run; k++)
        printf("%s%s", k == def->kernel ? "" : ", ",
               k->dtype == DT_ANY ? "any" : dtype_name(k->dtype));
}

static void print_text(const char *label, const char *text)
{
    if (text && *text)
        printf("  %-8s%s\n", label, text);
}

static void print_op(const struct op_def *def)
{
    printf("%s\n", def->name);
    print_text("in", def->in);
    print_text("out", def->out);
    print_text("attr", def->attr);
    printf("  %-8s", "types");
    print_types(def);
    putchar('\n');
}

/* Blank cells would be lost in some renderers' tables. */
static const char *cell(const char *text)
{
    return text && *text ? text : "-";
}

static void print_markdown(void)
{
    size_t count = 0;

    while (op_all()[count])
        count++;
    printf("# Ops\n\n"
           "The %zu ops that a task can run, from their records in "
           "`src/kernel/`. This page is made by\n"
           "`muster ops --markdown`; do not edit it. *Types* are those of the "
           "attribute that picks the\n"
           "kernel (`T` for most).\n\n"
           "| Op | Inputs | Outputs | Types |\n|---|---|---|---|\n",
           count);
    for (size_t i = 0; i < count; i++) {
        const struct op_def *def = op_all()[i];

        printf("| %s | %s | %s | ", def->name, cell(def->in), cell(def->out));
        print_types(def);
        puts(" |");
    }
}

static int print_named(int argc, char **argv)
{
    int rc = EXIT_SUCCESS;

    for (int i = 0; i < argc; i++) {
        const struct op_def *def = op_find(argv[i]);

        if (def) {
            print_op(def);
            continue;
        }
        fprintf(stderr, "muster ops: There is no op \"%s\"\n", argv[i]);
        rc = EXIT_FAILURE;
    }
    return rc;
}

int ops_main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    struct answers a = { 0 };

    if (argc && *argv[0] != '-')
        return print_named(argc, argv);
    if (options_parse(table, argc, argv, &a, &st)) {
        fprintf(stderr, "muster ops: %s\n", st.msg);
        return EXIT_USAGE;
    }
    if (a.help)
        print_help(stdout);
    else if (a.markdown)
        print_markdown();
    else
        for (size_t i = 0; op_all()[i]; i++)
            puts(op_all()[i]->name);
    return EXIT_SUCCESS;
}
