/*
 * Command line options from a table: one row an option, from which come the
 * parsing, the checks and the help text.
 *
 * A value may follow its option as --name=value or as the next word, and "-"
 * serves for "--" and for "_". Distributed TensorFlow programs are launched
 * by lines that people paste from pages where every comma and colon is
 * followed by a blank:
 *
 *   --ps_hosts = ps0: 2222, ps1: 2222 --worker_hosts = w0: 2222,
 *   --w1:2222 --job_name = ps
 *
 * The shell makes many words of that. A value therefore goes on with the next
 * word while one of the two says so: the value so far ends with , : ; or =, or
 * the next word begins with one of them. After a comma an item may even carry
 * dashes of its own (as --w1:2222 above), if it looks like an address and no
 * option has its name.
 *
 * The table and what it fills belong to the caller; strings are the caller's
 * to free. No state, no threads.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdio.h>

#include "base/base.h"
#include "base/status.h"

enum option_kind {
    OPTION_TEXT,   /* char *: joined, blanks at the joints dropped */
    OPTION_INT,    /* int, from 0 up */
    OPTION_WORD,   /* char *: one of the words in `value`, "a|b|c" */
    OPTION_LIST,   /* struct option_words: may be given several times */
    OPTION_SWITCH, /* bool: takes no value */
    OPTION_HELP    /* the same, and what follows is not looked at */
};

/* The caller's, with option_words_done(). */
struct option_words {
    char **at;
    int count, room;
};

struct option {
    const char *name;
    enum option_kind kind;
    size_t offset;     /* of the field that it sets */
    const char *value; /* what the help calls the value */
    const char *help;  /* NULL: another name for an option with help */
};

/* The table ends with a row without a name. argv are the words after the
 * program and the subcommand. On failure what was set so far is kept, for the
 * owner to free. */
MUST_USE enum mst_code options_parse(const struct option *table, int argc,
                                     char **argv, void *into,
                                     struct status *st);
/* The same for commands that take words beside their options ("2 w2:2222"),
 * which are joined by the same rules. The words are the caller's. */
MUST_USE enum mst_code options_parse_words(const struct option *table, int argc,
                                           char **argv, void *into,
                                           struct option_words *words,
                                           struct status *st);
void option_words_done(struct option_words *words);
/* The help of every row that has one, wrapped. */
void options_help(const struct option *table, FILE *out);

/* Of the count names, spaced by stride bytes, the one that was most likely
 * meant; NULL when none is near. Also serves the subcommands. */
const char *options_nearest(const char *word, const void *names, size_t count,
                            size_t stride);

#endif
