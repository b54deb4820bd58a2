/* Instances: how they are made, in which state they are, and how they speak. See instance.h.
 *
 * Everything here is static: this file is included by fmi2.c and fmi3.c, and includes the others.
 */
#include "instance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const Instance *instance, Status status, const char *format, ...)
{
    static const char *const CATEGORIES[] = {"logAll", "logStatusWarning", "logStatusDiscard", "logStatusError"};
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    instance->deliver(instance, status, CATEGORIES[status], message);
}

/* For functions that this model has no use for. */
static Status not_applicable(const Instance *instance, const char *function, const char *reason)
{
    if (instance) say(instance, STATUS_ERROR, "%s: %s.", function, reason);
    return STATUS_ERROR;
}

static Status right_count(const Instance *instance, size_t given, size_t wanted, const char *function)
{
    if (given == wanted) return STATUS_OK;
    say(instance, STATUS_ERROR, "%s: room for %lu values was given, but there are %lu.", function,
        (unsigned long)given, (unsigned long)wanted);
    return STATUS_ERROR;
}

#include KIND_SOURCE

static char *copy_of(const char *text)
{
    size_t size = strlen(text ? text : "") + 1;
    char *copy = malloc(size);
    if (copy) memcpy(copy, text ? text : "", size);
    return copy;
}

static void instance_free(Instance *instance)
{
    if (!instance) return;
    kind_close(instance);
    free(instance->name);
    free(instance);
}

static void instance_reset(Instance *instance)
{
    Values *v = &instance->v;
    *v->time = 0.0;
    for (size_t i = 0; i < v->nu; i++) v->slope[i] = 0.0;
    kind_start(instance);
    kind_forget(instance);
    instance->start_time = 0.0;
    instance->tolerance = 0.0;
    instance->was_set = 1;
    instance->mode = INSTANTIATED;
}

/* Whether the model is the one that is meant, and can be run in the way that is wanted; says so if not. */
static int suitable(const Instance *instance, const char *token, const char *function)
{
    if (!token || strcmp(token, instance->token) != 0) {
        say(instance, STATUS_ERROR,
            "Cannot instantiate: the token '%s' is not that of this binary, '%s'. The model description and the "
            "binary belong to different FMUs.", token ? token : "", instance->token);
        return 0;
    }
    if (KIND_IS_SAMPLED(instance) && !instance->co_simulation) {
        (void)not_applicable(instance, function, "this is a sampled model: it is for co-simulation only");
        return 0;
    }
    return 1;
}

/* What the importer says when it asks for an instance. */
typedef struct {
    const char *name, *token, *resources;
    int co_simulation;
    Deliver *deliver;
    AnyFunction *logger;
    void *environment;
} Request;

/* A new instance, or NULL with a message. */
static Instance *instance_new(Request request, const char *function)
{
    Instance *instance = calloc(1, sizeof *instance);
    if (!instance) return NULL;
    instance->deliver = request.deliver;
    instance->logger = request.logger;
    instance->environment = request.environment;
    instance->co_simulation = request.co_simulation;
    instance->name = copy_of(request.name);
    if (instance->name && kind_open(instance, request.resources, function) && suitable(instance, request.token, function)) {
        instance_reset(instance);
        return instance;
    }
    instance_free(instance);
    return NULL;
}

/* Whether a function may be called now; says so if not. */
static int allowed(const Instance *instance, int modes, const char *function)
{
    static const char *const NAMES[] = {"instantiated", "initialization mode", "event mode", "continuous-time mode",
                                        "step mode", "terminated"};
    if (!instance) return 0;
    if (instance->mode & modes) return 1;
    int k = 0;
    while (k < 5 && !(instance->mode >> k & 1)) k++;
    say(instance, STATUS_ERROR, "%s must not be called now: the instance is in the state '%s'.", function, NAMES[k]);
    return 0;
}

static Status enter(Instance *instance, int from, int to, const char *function)
{
    if (!allowed(instance, from, function)) return STATUS_ERROR;
    instance->mode = to;
    return STATUS_OK;
}

static Status exit_initialization(Instance *instance, const char *function)
{
    return enter(instance, INITIALIZATION, instance && instance->co_simulation ? STEP : EVENT, function);
}

static Status set_up(Instance *instance, int has_tolerance, double tolerance, double start_time, const char *function)
{
    if (!allowed(instance, INSTANTIATED, function)) return STATUS_ERROR;
    instance->tolerance = has_tolerance && tolerance > 0.0 ? tolerance : 0.0;
    instance->start_time = start_time;
    *instance->v.time = start_time;
    kind_forget(instance);
    return STATUS_OK;
}

#include "variables.c"
#include "slopes.c"
#include "steps.c"
#include "saved.c"
