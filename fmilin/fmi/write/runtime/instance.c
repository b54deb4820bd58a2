/* See instance.h. Everything here is static: this file is included by fmi2.c and fmi3.c. */
#include "instance.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.c"

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

static char *copy_of(const char *text)
{
    size_t size = strlen(text ? text : "") + 1;
    char *copy = malloc(size);
    if (copy) memcpy(copy, text ? text : "", size);
    return copy;
}

/* A new instance, or NULL with a message. */
static Instance *instance_new(const char *name, const char *token, Deliver *deliver, AnyFunction *logger,
                              void *environment)
{
    Instance *instance = calloc(1, sizeof *instance);
    if (!instance) return NULL;
    instance->deliver = deliver;
    instance->logger = logger;
    instance->environment = environment;
    instance->name = copy_of(name);
    instance->mode = INSTANTIATED;
    model_start(&instance->model);
    if (instance->name && token && strcmp(token, MODEL_TOKEN) == 0) return instance;
    say(instance, STATUS_ERROR,
        "Cannot instantiate: the token '%s' is not that of this binary, '%s'. The model description and the binary "
        "belong to different FMUs.", token ? token : "", MODEL_TOKEN);
    free(instance->name);
    free(instance);
    return NULL;
}

static void instance_free(Instance *instance)
{
    if (!instance) return;
    free(instance->name);
    free(instance);
}

static void instance_reset(Instance *instance)
{
    model_start(&instance->model);
    instance->start_time = 0.0;
    instance->mode = INSTANTIATED;
}

/* Whether a function may be called now; says so if not. */
static int allowed(const Instance *instance, int modes, const char *function)
{
    static const char *const NAMES[] = {"instantiated", "initialization mode", "event mode", "continuous-time mode",
                                        "terminated"};
    if (!instance) return 0;
    if (instance->mode & modes) return 1;
    int k = 0;
    while (k < 4 && !(instance->mode >> k & 1)) k++;
    say(instance, STATUS_ERROR, "%s must not be called now: the instance is in the state '%s'.", function, NAMES[k]);
    return 0;
}

static Status enter(Instance *instance, int from, int to, const char *function)
{
    if (!allowed(instance, from, function)) return STATUS_ERROR;
    instance->mode = to;
    return STATUS_OK;
}

/* For functions that this kind of model has no use for. */
static Status not_applicable(const Instance *instance, const char *function, const char *reason)
{
    if (instance) say(instance, STATUS_ERROR, "%s: %s.", function, reason);
    return STATUS_ERROR;
}

static Status solved(const Instance *instance, int outcome, const char *function)
{
    const Model *m = &instance->model;
    if (outcome == SOLVED) return STATUS_OK;
    if (outcome == SINGULAR)
        say(instance, STATUS_DISCARD,
            "%s: the linear system for the accelerations and multipliers is singular at time %.17g: it does not "
            "determine '%s'.", function, m->time, UNKNOWN_NAMES[m->culprit]);
    else
        say(instance, STATUS_DISCARD,
            "%s: the linear system for the accelerations and multipliers has a coefficient that is infinite or not "
            "a number at time %.17g.", function, m->time);
    return STATUS_DISCARD;
}

static Status evaluate(Instance *instance, const char *function)
{
    return solved(instance, model_evaluate(&instance->model), function);
}

static Status right_count(const Instance *instance, size_t given, size_t wanted, const char *function)
{
    if (given == wanted) return STATUS_OK;
    say(instance, STATUS_ERROR, "%s: room for %lu values was given, but there are %lu.", function,
        (unsigned long)given, (unsigned long)wanted);
    return STATUS_ERROR;
}

static Status unknown_reference(const Instance *instance, unsigned reference, const char *what, const char *function)
{
    say(instance, STATUS_ERROR, "%s: the value reference %u is not %s of this model.", function, reference, what);
    return STATUS_ERROR;
}

/* Where the value of a variable is kept, or NULL. */
static double *place_of(Model *m, unsigned reference)
{
    if (reference < REF_X) return &m->time;
    if (reference < REF_DERIVATIVE) return m->x + (reference - REF_X);
    if (reference < REF_U) return m->z + (reference - REF_DERIVATIVE);
    if (reference < REF_Y) return m->u + (reference - REF_U);
    if (reference < REF_P) return m->z + NX + (reference - REF_Y);
    if (reference < REF_END) return m->p + (reference - REF_P);
    return NULL;
}

static int is_calculated(unsigned reference)
{
    return (REF_DERIVATIVE <= reference && reference < REF_U) || (REF_Y <= reference && reference < REF_P);
}

static Status get_values(Instance *instance, const unsigned references[], size_t n, double values[],
                         const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    for (size_t k = 0; k < n; k++) {
        const double *place = place_of(&instance->model, references[k]);
        if (!place) return unknown_reference(instance, references[k], "a variable", function);
        if (is_calculated(references[k])) {
            Status status = evaluate(instance, function);
            if (status != STATUS_OK) return status;
        }
        values[k] = *place;
    }
    return STATUS_OK;
}

/* The modes in which a variable may be set: inputs always, states and parameters until initialization ends. */
static int settable(unsigned reference)
{
    if (is_calculated(reference) || reference == REF_TIME) return 0;
    if (REF_U <= reference && reference < REF_Y) return ANY_MODE - TERMINATED;
    return INSTANTIATED + INITIALIZATION;
}

static Status set_values(Instance *instance, const unsigned references[], size_t n, const double values[],
                         const char *function)
{
    if (!allowed(instance, ANY_MODE - TERMINATED, function)) return STATUS_ERROR;
    for (size_t k = 0; k < n; k++) {
        if (references[k] >= REF_END) return unknown_reference(instance, references[k], "a variable", function);
        if (settable(references[k]) & instance->mode) continue;
        say(instance, STATUS_ERROR,
            "%s: the variable with value reference %u cannot be set now: inputs can at any time, parameters and the "
            "start values of states only before and in initialization mode, calculated variables never.",
            function, references[k]);
        return STATUS_ERROR;
    }
    for (size_t k = 0; k < n; k++) *place_of(&instance->model, references[k]) = values[k];
    if (n > 0) instance->model.known = NOTHING_KNOWN;
    return STATUS_OK;
}

static Status set_time(Instance *instance, double time, int modes, const char *function)
{
    if (!allowed(instance, modes, function)) return STATUS_ERROR;
    instance->model.time = time;
    instance->model.known = NOTHING_KNOWN;
    return STATUS_OK;
}

static Status set_states(Instance *instance, const double x[], size_t nx, const char *function)
{
    if (!allowed(instance, EVENT + CONTINUOUS, function)) return STATUS_ERROR;
    if (right_count(instance, nx, NX, function) != STATUS_OK) return STATUS_ERROR;
    for (size_t i = 0; i < nx; i++) instance->model.x[i] = x[i];
    instance->model.known = NOTHING_KNOWN;
    return STATUS_OK;
}

static Status get_states(const Instance *instance, double x[], size_t nx, const char *function)
{
    if (!allowed(instance, ANY_MODE - INSTANTIATED, function)) return STATUS_ERROR;
    if (right_count(instance, nx, NX, function) != STATUS_OK) return STATUS_ERROR;
    for (size_t i = 0; i < nx; i++) x[i] = instance->model.x[i];
    return STATUS_OK;
}

static Status get_nominals(const Instance *instance, double nominals[], size_t nx, const char *function)
{
    if (!allowed(instance, ANY_MODE - INSTANTIATED, function)) return STATUS_ERROR;
    if (right_count(instance, nx, NX, function) != STATUS_OK) return STATUS_ERROR;
    for (size_t i = 0; i < nx; i++) nominals[i] = X_NOMINAL[i];
    return STATUS_OK;
}

static Status get_derivatives(Instance *instance, double derivatives[], size_t nx, const char *function)
{
    if (!allowed(instance, ANY_MODE - INSTANTIATED, function)) return STATUS_ERROR;
    if (right_count(instance, nx, NX, function) != STATUS_OK) return STATUS_ERROR;
    Status status = evaluate(instance, function);
    for (size_t i = 0; status == STATUS_OK && i < nx; i++) derivatives[i] = instance->model.z[i];
    return status;
}

#if HAS_DERIVATIVES
/* The column of a known variable in the partial derivatives, or -1. */
static int column_of(unsigned reference)
{
    if (reference < REF_X) return N_MOTION;
    if (reference < REF_DERIVATIVE) return (int)(reference - REF_X);
    if (is_calculated(reference) || reference >= REF_END) return -1;
    if (reference < REF_Y) return NX + (int)(reference - REF_U);
    return N_MOTION + 1 + (int)(reference - REF_P);
}

/* The row of an unknown variable in the partial derivatives, or -1. Local variables have none. */
static int row_of(unsigned reference)
{
    if (!is_calculated(reference)) return -1;
    if (reference < REF_U) return (int)(reference - REF_DERIVATIVE);
    return reference < REF_Y + ND ? NX + (int)(reference - REF_Y) : -1;
}

static Status check_derivative(const Instance *instance, const unsigned unknowns[], size_t n_unknowns,
                               const unsigned knowns[], size_t n_knowns, const char *function)
{
    if (!allowed(instance, ANY_MODE - INSTANTIATED, function)) return STATUS_ERROR;
    for (size_t k = 0; k < n_knowns; k++)
        if (column_of(knowns[k]) < 0) return unknown_reference(instance, knowns[k], "a known variable", function);
    for (size_t k = 0; k < n_unknowns; k++)
        if (row_of(unknowns[k]) < 0 && column_of(unknowns[k]) < 0)
            return unknown_reference(instance, unknowns[k], "a derivative, an output or a state", function);
    return STATUS_OK;
}

/* A state or input among the unknowns is an output that passes it on: its sensitivity is its own seed. */
static Status directional_derivative(Instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                     const unsigned knowns[], size_t n_knowns, const double seed[],
                                     double sensitivity[], const char *function)
{
    Status status = check_derivative(instance, unknowns, n_unknowns, knowns, n_knowns, function);
    if (status != STATUS_OK) return status;
    Model *m = &instance->model;
    memset(m->ds, 0, sizeof m->ds);
    for (size_t k = 0; k < n_knowns; k++) m->ds[column_of(knowns[k])] += seed[k];
    status = solved(instance, model_product(m), function);
    for (size_t k = 0; status == STATUS_OK && k < n_unknowns; k++) {
        int row = row_of(unknowns[k]);
        sensitivity[k] = row >= 0 ? m->dz[row] : m->ds[column_of(unknowns[k])];
    }
    return status;
}
#else
static Status directional_derivative(Instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                     const unsigned knowns[], size_t n_knowns, const double seed[],
                                     double sensitivity[], const char *function)
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)sensitivity;
    return not_applicable(instance, function, "this FMU was built without directional derivatives");
}
#endif

/* Saved states. The token in front of the bytes makes sure that only this model reads them. */
#define SERIALIZED_SIZE (sizeof MODEL_TOKEN + sizeof(Snapshot))

static Status save(const Instance *instance, void **saved, const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    Snapshot *snapshot = *saved ? *saved : calloc(1, sizeof *snapshot);
    if (!snapshot) return not_applicable(instance, function, "there is no memory left");
    const Model *m = &instance->model;
    snapshot->mode = instance->mode;
    snapshot->start_time = instance->start_time;
    snapshot->time = m->time;
    memcpy(snapshot->x, m->x, sizeof m->x);
    memcpy(snapshot->u, m->u, sizeof m->u);
    memcpy(snapshot->p, m->p, sizeof m->p);
    *saved = snapshot;
    return STATUS_OK;
}

static Status restore(Instance *instance, const void *saved, const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    if (!saved) return not_applicable(instance, function, "there is no saved state to restore");
    const Snapshot *snapshot = saved;
    Model *m = &instance->model;
    instance->mode = snapshot->mode;
    instance->start_time = snapshot->start_time;
    m->time = snapshot->time;
    memcpy(m->x, snapshot->x, sizeof m->x);
    memcpy(m->u, snapshot->u, sizeof m->u);
    memcpy(m->p, snapshot->p, sizeof m->p);
    m->known = NOTHING_KNOWN;
    return STATUS_OK;
}

static Status discard_saved(const Instance *instance, void **saved, const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    if (saved) {
        free(*saved);
        *saved = NULL;
    }
    return STATUS_OK;
}

static Status serialize(const Instance *instance, const void *saved, void *bytes, size_t size, const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    if (!saved) return not_applicable(instance, function, "there is no saved state to serialize");
    if (right_count(instance, size, SERIALIZED_SIZE, function) != STATUS_OK) return STATUS_ERROR;
    memcpy(bytes, MODEL_TOKEN, sizeof MODEL_TOKEN);
    memcpy((char *)bytes + sizeof MODEL_TOKEN, saved, sizeof(Snapshot));
    return STATUS_OK;
}

static Status deserialize(const Instance *instance, const void *bytes, size_t size, void **saved,
                          const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    if (size != SERIALIZED_SIZE || memcmp(bytes, MODEL_TOKEN, sizeof MODEL_TOKEN) != 0)
        return not_applicable(instance, function, "these bytes are no saved state of this model");
    Snapshot *snapshot = *saved ? *saved : calloc(1, sizeof *snapshot);
    if (!snapshot) return not_applicable(instance, function, "there is no memory left");
    memcpy(snapshot, (const char *)bytes + sizeof MODEL_TOKEN, sizeof *snapshot);
    *saved = snapshot;
    return STATUS_OK;
}
