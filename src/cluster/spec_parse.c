#include "cluster/spec_parse.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

char *spec_parse_squeeze(const char *text)
{
    char *copy = mem_str(text), *to = copy;

    for (; *text; text++)
        if (!isspace((unsigned char)*text))
            *to++ = *text;
    *to = 0;
    return copy;
}

/* The whole text as an index; -1 when it is none. */
static int index_parse(const char *text)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, 10);
    if (end == text || *end || errno || n < 0 || n > INT_MAX)
        return -1;
    return (int)n;
}

/* "" is an empty list; "a:1," and "a:1,,b:2" have an empty item. */
enum mst_code spec_parse_hosts(struct cluster_spec *spec, const char *job,
                               int first, const char *list, struct status *st)
{
    char *text = spec_parse_squeeze(list), *item, *rest = text;
    enum mst_code code = MST_OK;

    for (int task = first; *text && (item = strsep(&rest, ",")); task++) {
        code = *item ? cluster_spec_add(spec, job, task, item, st)
                     : status_set(st, MST_INVALID_ARGUMENT,
                                  "The list of job %s has an empty item (%d)",
                                  job, task - first + 1);
        if (code)
            break;
    }
    mem_free(text);
    return code;
}

enum mst_code spec_parse_def(struct cluster_spec *spec,
                             const Tensorflow__ClusterDef *def,
                             struct status *st)
{
    enum mst_code code = MST_OK;

    for (size_t j = 0; j < def->n_job; j++)
        for (size_t i = 0; i < def->job[j]->n_tasks && !code; i++)
            code = cluster_spec_add(spec, def->job[j]->name,
                                    def->job[j]->tasks[i]->key,
                                    def->job[j]->tasks[i]->value, st);
    return code;
}

/* "ps=h:p,h:p" or "worker/2=h:p"; text is taken apart. */
static enum mst_code parse_job(struct cluster_spec *spec, char *text,
                               struct status *st)
{
    char *list = strchr(text, '='), *slash = strchr(text, '/');
    int first = 0;

    if (!list || list == text || !list[1])
        return status_set(st, MST_INVALID_ARGUMENT,
                          "\"%s\" does not say job=host:port,host:port", text);
    *list++ = 0;
    if (slash && slash < list) {
        *slash++ = 0;
        first = index_parse(slash);
        if (first < 0)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "\"%s\" is no task index of job %s", slash, text);
    }
    return spec_parse_hosts(spec, text, first, list, st);
}

enum mst_code spec_parse_jobs(struct cluster_spec *spec, const char *text,
                              struct status *st)
{
    char *copy = spec_parse_squeeze(text), *item, *rest = copy;
    enum mst_code code = MST_OK;

    while (!code && (item = strsep(&rest, ";")))
        if (*item)
            code = parse_job(spec, item, st);
    mem_free(copy);
    return code;
}

static enum mst_code bad_config(struct status *st, const char *what)
{
    return status_set(st, MST_INVALID_ARGUMENT, "TF_CONFIG: %s", what);
}

/* A string's address goes in; anything else is said to be wrong. */
static enum mst_code add_json(struct cluster_spec *spec, const char *job,
                              int task, const json_t *value, struct status *st)
{
    enum mst_code code;
    char *address;

    if (!json_is_string(value))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TF_CONFIG: task %d of job %s is no string", task,
                          job);
    address = spec_parse_squeeze(json_string_value(value));
    code = cluster_spec_add(spec, job, task, address, st);
    mem_free(address);
    return code;
}

static enum mst_code parse_tasks(struct cluster_spec *spec, const char *job,
                                 json_t *tasks, struct status *st)
{
    enum mst_code code = MST_OK;
    const char *key;
    json_t *value;
    size_t i;

    if (json_is_array(tasks)) {
        json_array_foreach(tasks, i, value)
        {
            code = add_json(spec, job, (int)i, value, st);
            if (code)
                return code;
        }
        return MST_OK;
    }
    if (!json_is_object(tasks))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TF_CONFIG: job %s is neither a list of addresses "
                          "nor an object of index: address",
                          job);
    json_object_foreach(tasks, key, value)
    {
        code = index_parse(key) < 0
                   ? status_set(st, MST_INVALID_ARGUMENT,
                                "TF_CONFIG: \"%s\" is no task index of job %s",
                                key, job)
                   : add_json(spec, job, index_parse(key), value, st);
        if (code)
            return code;
    }
    return MST_OK;
}

/* An index may come as a number or, as some launchers write it, a string. */
static int index_of(const json_t *value)
{
    if (!value)
        return 0;
    if (json_is_string(value))
        return index_parse(json_string_value(value));
    if (json_is_integer(value) && json_integer_value(value) <= INT_MAX)
        return (int)MAX(json_integer_value(value), -1);
    return -1;
}

static enum mst_code parse_task(json_t *task, char **ret_job, int *ret_task,
                                struct status *st)
{
    const char *type;
    int index;

    *ret_job = NULL;
    *ret_task = -1;
    if (!task)
        return MST_OK;
    if (!json_is_object(task))
        return bad_config(st, "\"task\" is no object");
    type = json_string_value(json_object_get(task, "type"));
    if (!type)
        return bad_config(st, "\"task\" has no \"type\"");
    index = index_of(json_object_get(task, "index"));
    if (index < 0)
        return bad_config(st, "the \"index\" of \"task\" is no task index");
    *ret_job = mem_str(type);
    *ret_task = index;
    return MST_OK;
}

enum mst_code spec_parse_tf_config(struct cluster_spec *spec, const char *text,
                                   char **ret_job, int *ret_task,
                                   struct status *st)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    json_t *cluster, *tasks;
    enum mst_code code = MST_OK;
    const char *job;

    if (!root)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TF_CONFIG is no JSON: %s at line %d, column %d",
                          error.text, error.line, error.column);
    cluster = json_object_get(root, "cluster");
    if (!json_is_object(root) || (cluster && !json_is_object(cluster))) {
        code = bad_config(st, "it, and its \"cluster\", must be objects");
        goto out;
    }
    json_object_foreach(cluster, job, tasks)
    {
        code = parse_tasks(spec, job, tasks, st);
        if (code)
            goto out;
    }
    code = parse_task(json_object_get(root, "task"), ret_job, ret_task, st);
out:
    json_decref(root);
    return code;
}
