/*
 * The program: looks the subcommand up in one table and calls it. The help
 * text is that table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/command.h"
#include "cli/options.h"

static int help_main(int argc, char **argv);

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    { "serve", serve_main, "run one task of a cluster (a ps, a worker)" },
    { "add-worker", add_worker_main, "add a worker to a job that trains" },
    { "remove-worker", remove_worker_main, "take one out of it" },
    { "status", status_main, "show who is in a job, and how each task is" },
    { "train", train_main, "train a graph as a worker of a job" },
    { "ops", ops_main, "list the ops that a task can run" },
    { "version", version_main, "print the version" },
    { "help", help_main, "print this text, or that of a subcommand" },
};

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static void print_help(FILE *out)
{
    fputs("muster, a distributed TensorFlow runtime.\n\n"
          "Usage: muster COMMAND [options]\n\n",
          out);
    for (size_t i = 0; i < COUNT(commands); i++)
        fprintf(out, "  %-13s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`muster COMMAND --help` says more.\n", out);
}

static int unknown(const char *name)
{
    const char *near = options_nearest(name, &commands[0].name, COUNT(commands),
                                       sizeof(commands[0]));

    fprintf(stderr, "muster: There is no command \"%s\"", name);
    if (near)
        fprintf(stderr, "; did you mean %s?", near);
    fputs("\n", stderr);
    return EXIT_USAGE;
}

static int help_main(int argc, char **argv)
{
    static char help[] = "--help";
    const struct command *c;

    if (!argc || !strcmp(argv[0], "help") || *argv[0] == '-') {
        print_help(stdout);
        return EXIT_SUCCESS;
    }
    c = find(argv[0]);
    return c ? c->run(1, (char *[]){ help, NULL }) : unknown(argv[0]);
}

int main(int argc, char **argv)
{
    const struct command *c;

    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return help_main(0, NULL);
    if (!strcmp(argv[1], "--version"))
        return version_main(0, NULL);
    c = find(argv[1]);
    return c ? c->run(argc - 2, argv + 2) : unknown(argv[1]);
}
