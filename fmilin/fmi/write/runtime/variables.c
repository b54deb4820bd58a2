/* Values of variables, by reference and all states at once. */

typedef enum { TIME, STATE, DERIVATIVE, INPUT, COMPUTED, PARAMETER, NO_VARIABLE } Group;

typedef struct {
    Group group;
    size_t index; /* in its group */
} Variable;

static Variable variable_of(const Values *v, unsigned reference)
{
    const size_t counts[] = {1, v->nx, v->nf, v->nu, v->ny, v->np};
    Variable found = {TIME, reference};
    for (int group = TIME; group < NO_VARIABLE; group++) {
        found.group = (Group)group;
        if (found.index < counts[group]) return found;
        found.index -= counts[group];
    }
    found.group = NO_VARIABLE;
    return found;
}

static int is_calculated(Variable variable) { return variable.group == DERIVATIVE || variable.group == COMPUTED; }

/* The row of z in which a calculated variable is. */
static size_t row_of(const Values *v, Variable variable)
{
    return variable.group == COMPUTED ? v->nf + variable.index : variable.index;
}

/* Where the value of a variable is kept. */
static double *place_of(const Values *v, Variable variable)
{
    switch (variable.group) {
    case TIME: return v->time;
    case STATE: return v->x + variable.index;
    case INPUT: return v->u + variable.index;
    case PARAMETER: return v->p + variable.index;
    default: return v->z + row_of(v, variable);
    }
}

static Status unknown_reference(const Instance *instance, unsigned reference, const char *what, const char *function)
{
    say(instance, STATUS_ERROR, "%s: the value reference %u is not %s of this model.", function, reference, what);
    return STATUS_ERROR;
}

static Status get_values(Instance *instance, const unsigned references[], size_t n, double values[],
                         const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    const Values *v = &instance->v;
    for (size_t k = 0; k < n; k++) {
        Variable variable = variable_of(v, references[k]);
        if (variable.group == NO_VARIABLE) return unknown_reference(instance, references[k], "a variable", function);
        if (is_calculated(variable)) {
            Status status = kind_evaluate(instance, row_of(v, variable), function);
            if (status != STATUS_OK) return status;
        }
        values[k] = *place_of(v, variable);
    }
    return STATUS_OK;
}

/* The modes in which a variable may be set: inputs always, parameters until initialization ends. States, too, where the
 * solver is the importer's: the standard has a function of its own for them then, but most tools allow both, and some
 * importers (CasADi's) rely on it. */
static int settable(Variable variable)
{
    if (is_calculated(variable) || variable.group == TIME) return 0;
    if (variable.group == INPUT) return ANY_MODE - TERMINATED;
    if (variable.group == STATE) return INSTANTIATED + INITIALIZATION + EVENT + CONTINUOUS;
    return INSTANTIATED + INITIALIZATION;
}

static Status set_values(Instance *instance, const unsigned references[], size_t n, const double values[],
                         const char *function)
{
    if (!allowed(instance, ANY_MODE - TERMINATED, function)) return STATUS_ERROR;
    const Values *v = &instance->v;
    for (size_t k = 0; k < n; k++) {
        Variable variable = variable_of(v, references[k]);
        if (variable.group == NO_VARIABLE) return unknown_reference(instance, references[k], "a variable", function);
        if (settable(variable) & instance->mode) continue;
        say(instance, STATUS_ERROR,
            "%s: the variable with value reference %u cannot be set now: inputs can at any time, states before steps are "
            "taken, parameters only before and in initialization mode, calculated variables never.",
            function, references[k]);
        return STATUS_ERROR;
    }
    for (size_t k = 0; k < n; k++) *place_of(v, variable_of(v, references[k])) = values[k];
    if (n == 0) return STATUS_OK;
    instance->was_set = 1;
    kind_forget(instance);
    return STATUS_OK;
}

static Status set_time(Instance *instance, double time, const char *function)
{
    if (!allowed(instance, EVENT + CONTINUOUS, function)) return STATUS_ERROR;
    *instance->v.time = time;
    kind_forget(instance);
    return STATUS_OK;
}

static Status set_states(Instance *instance, const double x[], size_t nx, const char *function)
{
    if (!allowed(instance, EVENT + CONTINUOUS, function)) return STATUS_ERROR;
    if (right_count(instance, nx, instance->v.nf, function) != STATUS_OK) return STATUS_ERROR;
    for (size_t i = 0; i < nx; i++) instance->v.x[i] = x[i];
    kind_forget(instance);
    return STATUS_OK;
}

/* Copy the states or their nominals. */
static Status tell(const Instance *instance, const double *source, double target[], size_t nx, const char *function)
{
    if (right_count(instance, nx, instance->v.nf, function) != STATUS_OK) return STATUS_ERROR;
    for (size_t i = 0; i < nx; i++) target[i] = source[i];
    return STATUS_OK;
}

static Status get_states(const Instance *instance, double x[], size_t nx, const char *function)
{
    if (!allowed(instance, ANY_MODE - INSTANTIATED, function)) return STATUS_ERROR;
    return tell(instance, instance->v.x, x, nx, function);
}

static Status get_nominals(const Instance *instance, double nominals[], size_t nx, const char *function)
{
    if (!allowed(instance, ANY_MODE - INSTANTIATED, function)) return STATUS_ERROR;
    return tell(instance, instance->v.x_nominal, nominals, nx, function);
}

static Status get_derivatives(Instance *instance, double derivatives[], size_t nx, const char *function)
{
    if (!allowed(instance, ANY_MODE - INSTANTIATED, function)) return STATUS_ERROR;
    const Values *v = &instance->v;
    if (right_count(instance, nx, v->nf, function) != STATUS_OK) return STATUS_ERROR;
    for (size_t i = 0; i < nx; i++) {
        Status status = kind_evaluate(instance, i, function);
        if (status != STATUS_OK) return status;
        derivatives[i] = v->z[i];
    }
    return STATUS_OK;
}
