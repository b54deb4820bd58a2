/* Models that move at samples only: they take over their inputs there, at the one at the beginning, too. */

/* The states at the next sample, with the inputs that v.extra begins with. */
static Status take_sample(Instance *instance, const char *function);

/* How many samples were taken until now, as a real number: whole at a sample. */
static double samples_until(const Instance *instance, double time)
{
    return (time - instance->start_time) / instance->kind.sample_time;
}

static const double LATE = 1e-6; /* a sample counts as reached by this part of its length earlier */

static int is_at_sample(const Instance *instance)
{
    double samples = samples_until(instance, *instance->v.time);
    return fabs(samples - floor(samples + 0.5)) <= LATE;
}

/* Whether outputs see the inputs: between samples they see those of the last one. */
static int sees_inputs(const Instance *instance)
{
    return !KIND_IS_SAMPLED(instance) || is_at_sample(instance);
}

static Status sampled_step(Instance *instance, double h, const char *function)
{
    const Values *v = &instance->v;
    double time = *v->time, sample_time = instance->kind.sample_time;
    if (is_at_sample(instance)) memcpy(v->extra, v->u, sizeof(double) * v->nu);
    double sample = floor(samples_until(instance, time) + LATE);
    double last = floor(samples_until(instance, time + h) + LATE);
    while (sample < last) {
        Status status = take_sample(instance, function);
        if (status != STATUS_OK) return status;
        sample += 1.0;
        double since = instance->start_time + sample * sample_time - time;
        for (size_t i = 0; i < v->nu; i++) v->extra[i] = v->u[i] + since * v->slope[i];
    }
    return STATUS_OK;
}
