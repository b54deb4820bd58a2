/* Directional derivatives, and in FMI 3.0 adjoint ones. */

#if KIND_HAS_DERIVATIVES
/* The column of a known variable in the partial derivatives, or -1. */
static long column_of(const Values *v, Variable variable)
{
    switch (variable.group) {
    case STATE: return (long)variable.index;
    case INPUT: return (long)(v->nx + variable.index);
    case TIME: return (long)(v->nx + v->nu);
    case PARAMETER: return (long)(v->nx + v->nu + 1 + variable.index);
    default: return -1;
    }
}

/* Whether the partial derivatives have a row for a variable. */
static int has_row(const Values *v, Variable variable)
{
    return is_calculated(variable) && row_of(v, variable) < v->nf + v->nd;
}

static Status check_derivative(const Instance *instance, const unsigned unknowns[], size_t n_unknowns,
                               const unsigned knowns[], size_t n_knowns, const char *function)
{
    if (!allowed(instance, ANY_MODE - INSTANTIATED, function)) return STATUS_ERROR;
    const Values *v = &instance->v;
    for (size_t k = 0; k < n_knowns; k++)
        if (column_of(v, variable_of(v, knowns[k])) < 0)
            return unknown_reference(instance, knowns[k], "a known variable", function);
    for (size_t k = 0; k < n_unknowns; k++) {
        Variable variable = variable_of(v, unknowns[k]);
        if (!has_row(v, variable) && column_of(v, variable) < 0)
            return unknown_reference(instance, unknowns[k], "a derivative, an output or a state", function);
    }
    return STATUS_OK;
}

static void clear_seeds(const Values *v)
{
    for (size_t k = 0; k < v->nx + v->nu + 1 + v->np; k++) v->ds[k] = 0.0;
}

/* The sensitivity of one unknown. A state or input among them is an output that passes it on: its own seed. */
static double sensitivity_of(const Values *v, Variable variable)
{
    return has_row(v, variable) ? v->dz[row_of(v, variable)] : v->ds[column_of(v, variable)];
}

static Status directional_derivative(Instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                     const unsigned knowns[], size_t n_knowns, const double seed[],
                                     double sensitivity[], const char *function)
{
    Status status = check_derivative(instance, unknowns, n_unknowns, knowns, n_knowns, function);
    if (status != STATUS_OK) return status;
    const Values *v = &instance->v;
    clear_seeds(v);
    for (size_t k = 0; k < n_knowns; k++) v->ds[column_of(v, variable_of(v, knowns[k]))] += seed[k];
    status = kind_product(instance, function);
    for (size_t k = 0; status == STATUS_OK && k < n_unknowns; k++)
        sensitivity[k] = sensitivity_of(v, variable_of(v, unknowns[k]));
    return status;
}

#if WITH_ADJOINT
static Status adjoint_derivative(Instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                 const unsigned knowns[], size_t n_knowns, const double seed[], double sensitivity[],
                                 const char *function)
{
    Status status = check_derivative(instance, unknowns, n_unknowns, knowns, n_knowns, function);
    if (status != STATUS_OK) return status;
    const Values *v = &instance->v;
    for (size_t k = 0; k < v->nf + v->ny; k++) v->dz[k] = 0.0;
    for (size_t k = 0; k < n_unknowns; k++) {
        Variable variable = variable_of(v, unknowns[k]);
        if (has_row(v, variable)) v->dz[row_of(v, variable)] += seed[k];
    }
    status = kind_adjoint(instance, function);
    if (status != STATUS_OK) return status;
    for (size_t k = 0; k < n_unknowns; k++) {
        Variable variable = variable_of(v, unknowns[k]);
        if (!has_row(v, variable)) v->ds[column_of(v, variable)] += seed[k];
    }
    for (size_t k = 0; k < n_knowns; k++) sensitivity[k] = v->ds[column_of(v, variable_of(v, knowns[k]))];
    return STATUS_OK;
}
#endif

#else
#define NO_DERIVATIVES "this FMU was built without directional derivatives"

static Status directional_derivative(Instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                     const unsigned knowns[], size_t n_knowns, const double seed[],
                                     double sensitivity[], const char *function)
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)sensitivity;
    return not_applicable(instance, function, NO_DERIVATIVES);
}

#if WITH_ADJOINT
static Status adjoint_derivative(Instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                 const unsigned knowns[], size_t n_knowns, const double seed[], double sensitivity[],
                                 const char *function)
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)sensitivity;
    return not_applicable(instance, function, NO_DERIVATIVES);
}
#endif
#endif
