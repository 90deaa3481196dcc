#include "cli/options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NAME_MAX_LEN 64
#define HELP_INDENT  24
#define HELP_WIDTH   79

/* The words that are left. */
struct words {
    char **at, **end;
};

static bool joins(char c)
{
    return c && strchr(",:;=", c);
}

static int edit_distance(const char *a, const char *b)
{
    int row[NAME_MAX_LEN + 1], n = (int)strlen(b);

    if (n > NAME_MAX_LEN || strlen(a) > NAME_MAX_LEN)
        return INT_MAX;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int corner = row[0];

        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = corner + (a[i - 1] != b[j - 1]);

            corner = row[j];
            row[j] = MIN(change, MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[n];
}

const char *options_nearest(const char *word, const void *names, size_t count,
                            size_t stride)
{
    const char *best = NULL;
    int best_distance = (int)strlen(word) / 2 + 1;

    for (size_t i = 0; i < count; i++) {
        const char *name;
        int d;

        memcpy(&name, (const char *)names + i * stride, sizeof(name));
        d = edit_distance(word, name);
        if (d < best_distance) {
            best_distance = d;
            best = name;
        }
    }
    return best;
}

static size_t table_size(const struct option *table)
{
    size_t n = 0;

    while (table[n].name)
        n++;
    return n;
}

/* The name in "--ps-hosts=..." as the table spells it: "ps_hosts". */
static void name_of(const char *word, char *name)
{
    size_t n = 0;

    word += strspn(word, "-");
    for (; *word && *word != '=' && n < NAME_MAX_LEN; word++)
        name[n++] = *word == '-' ? '_' : *word;
    name[n] = 0;
}

static const struct option *find(const struct option *table, const char *word)
{
    char name[NAME_MAX_LEN + 1];

    name_of(word, name);
    for (; table->name; table++)
        if (!strcmp(table->name, name))
            return table;
    return NULL;
}

static enum mst_code unknown(const struct option *table, const char *word,
                             struct status *st)
{
    char name[NAME_MAX_LEN + 1];
    const char *near;

    if (*word != '-')
        return status_set(st, MST_INVALID_ARGUMENT,
                          "\"%s\" belongs to no option", word);
    name_of(word, name);
    near =
        options_nearest(name, &table->name, table_size(table), sizeof(*table));
    status_set(st, MST_INVALID_ARGUMENT, "There is no option --%s", name);
    if (near)
        status_append(st, "; did you mean --%s?", near);
    return st->code;
}

/* "--w1:2222" is an item of a list, "--job_name", "--job_nam=x" are not. */
static bool dashed_item(const struct option *table, const char *word)
{
    return *word == '-' && strchr(word, ':') && !strchr(word, '=') &&
           !find(table, word);
}

/* Whether the word goes on with the value. */
static bool goes_on(const struct option *table, const char *value,
                    const char *word)
{
    size_t len = strlen(value);
    char last = len ? value[len - 1] : 0;

    if (*word == '-')
        return last == ',' && dashed_item(table, word);
    return joins(last) || joins(*word);
}

static void append(char **value, const char *more)
{
    char *old = *value;

    *value = mem_printf("%s%s", old, more);
    mem_free(old);
}

/* Takes the words that a value goes on with. */
static void join_words(const struct option *table, char **value,
                       struct words *w)
{
    while (**value && w->at < w->end && goes_on(table, *value, *w->at)) {
        append(value, *w->at + strspn(*w->at, "-"));
        w->at++;
    }
}

/* A number may be negative, so that the complaint is about the number. */
static bool starts_value(const char *word)
{
    return *word != '-' || (word[1] >= '0' && word[1] <= '9');
}

/* The value of the option that the first word names, and all its words are
 * taken. NULL when there is none. */
static char *take_value(const struct option *table, struct words *w)
{
    const char *first = strchr(*w->at++, '=');
    char *value;

    if (!first && w->at < w->end && **w->at == '=')
        first = *w->at++;
    if ((!first || !first[1]) && w->at < w->end && starts_value(*w->at))
        value = mem_str(*w->at++);
    else if (first)
        value = mem_str(first + 1);
    else
        return NULL;
    join_words(table, &value, w);
    return value;
}

static enum mst_code set_int(const struct option *o, const char *value,
                             int *field, struct status *st)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(value, &end, 10);
    if (*end || errno || n < 0 || n > INT_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "--%s needs a number from 0 up, not \"%s\"", o->name,
                          value);
    *field = (int)n;
    return MST_OK;
}

static bool is_one_of(const char *words, const char *value)
{
    size_t len = strlen(value);

    for (const char *w = words; w; w = strchr(w, '|')) {
        w += *w == '|';
        if (strcspn(w, "|") == len && !strncmp(w, value, len))
            return true;
    }
    return false;
}

static enum mst_code set_text(const struct option *o, const char *value,
                              char **field, struct status *st)
{
    if (o->kind == OPTION_WORD && !is_one_of(o->value, value))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "--%s is one of %s, not \"%s\"", o->name, o->value,
                          value);
    mem_free(*field);
    *field = mem_str(value);
    return MST_OK;
}

static enum mst_code add_item(const char *value, struct option_words *list)
{
    *MEM_PUSH(list->at, list->count, list->room) = mem_str(value);
    return MST_OK;
}

/* An empty text is a value: --worker_hosts= says that there are none. */
static enum mst_code parse_one(const struct option *table,
                               const struct option *o, struct words *w,
                               void *into, struct status *st)
{
    void *field = (char *)into + o->offset;
    enum mst_code code;
    char *value;

    if (o->kind == OPTION_SWITCH || o->kind == OPTION_HELP) {
        if (strchr(*w->at++, '='))
            return status_set(st, MST_INVALID_ARGUMENT, "--%s takes no value",
                              o->name);
        *(bool *)field = true;
        return MST_OK;
    }
    value = take_value(table, w);
    if (!value || (!*value && o->kind != OPTION_TEXT))
        code = status_set(st, MST_INVALID_ARGUMENT, "--%s needs a value (%s)",
                          o->name, o->value);
    else if (o->kind == OPTION_INT)
        code = set_int(o, value, field, st);
    else if (o->kind == OPTION_LIST)
        code = add_item(value, field);
    else
        code = set_text(o, value, field, st);
    mem_free(value);
    return code;
}

static void take_word(const struct option *table, struct words *w,
                      struct option_words *words)
{
    char *value = mem_str(*w->at++);

    join_words(table, &value, w);
    *MEM_PUSH(words->at, words->count, words->room) = value;
}

void option_words_done(struct option_words *words)
{
    for (int i = 0; i < words->count; i++)
        mem_free(words->at[i]);
    mem_free(words->at);
    *words = (struct option_words){ 0 };
}

enum mst_code options_parse_words(const struct option *table, int argc,
                                  char **argv, void *into,
                                  struct option_words *words, struct status *st)
{
    struct words w = { argv, argv + argc };

    while (w.at < w.end) {
        const struct option *o = **w.at == '-' ? find(table, *w.at) : NULL;
        enum mst_code code;

        if (!o && words && starts_value(*w.at)) {
            take_word(table, &w, words);
            continue;
        }
        code =
            o ? parse_one(table, o, &w, into, st) : unknown(table, *w.at, st);
        if (code || o->kind == OPTION_HELP)
            return code;
    }
    return MST_OK;
}

enum mst_code options_parse(const struct option *table, int argc, char **argv,
                            void *into, struct status *st)
{
    return options_parse_words(table, argc, argv, into, NULL, st);
}

/* Prints text from column HELP_INDENT on, breaking at blanks. */
static void wrap(const char *text, FILE *out)
{
    int column = HELP_INDENT;

    for (;;) {
        int len = (int)strcspn(text, " ");

        fprintf(out, "%.*s", len, text);
        column += len;
        text += len;
        if (!*text++)
            break;
        if (column + 1 + (int)strcspn(text, " ") > HELP_WIDTH)
            column = fprintf(out, "\n%*s", HELP_INDENT, "") - 1;
        else
            column += fprintf(out, " ");
    }
    fputc('\n', out);
}

void options_help(const struct option *table, FILE *out)
{
    for (; table->name; table++) {
        int column;

        if (!table->help)
            continue;
        column =
            fprintf(out, "  --%s%s%s", table->name, table->value ? "=" : "",
                    table->value ? table->value : "");
        if (column >= HELP_INDENT) {
            fputc('\n', out);
            column = 0;
        }
        fprintf(out, "%*s", HELP_INDENT - column, "");
        wrap(table->help, out);
    }
}
