/* Saved states: flat arrays of numbers, which may be written to a file. The token in front of the bytes makes sure
 * that only this model reads them. */

typedef struct {
    double *numbers;
    size_t count;
} Part;

enum { N_PARTS = 6, N_FIRST = 3 };

/* What a state consists of, besides the mode and the start time. */
static void parts_of(const Values *v, Part parts[N_PARTS])
{
    const Part all[N_PARTS] = {{v->time, 1},  {v->x, v->nx}, {v->u, v->nu}, {v->slope, v->nu},
                               {v->p, v->np}, {v->extra, v->n_extra}};
    memcpy(parts, all, sizeof all);
}

static size_t saved_size(const Instance *instance)
{
    const Values *v = &instance->v;
    return sizeof(double) * (N_FIRST + 1 + v->nx + 2 * v->nu + v->np + v->n_extra);
}

static size_t serialized_size(const Instance *instance) { return strlen(instance->token) + 1 + saved_size(instance); }

/* Room for a saved state: that of an earlier one, or new. */
static double *room_for(const Instance *instance, void *earlier, const char *function)
{
    double *room = earlier ? earlier : malloc(saved_size(instance));
    if (!room) (void)not_applicable(instance, function, "there is no memory left");
    return room;
}

static Status save(const Instance *instance, void **saved, const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    double *next = room_for(instance, *saved, function);
    if (!next) return STATUS_ERROR;
    *saved = next;
    Part parts[N_PARTS];
    parts_of(&instance->v, parts);
    *next++ = instance->mode;
    *next++ = instance->start_time;
    *next++ = instance->was_set;
    for (int k = 0; k < N_PARTS; k++)
        for (size_t i = 0; i < parts[k].count; i++) *next++ = parts[k].numbers[i];
    return STATUS_OK;
}

static Status restore(Instance *instance, const void *saved, const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    if (!saved) return not_applicable(instance, function, "there is no saved state to restore");
    const double *next = saved;
    Part parts[N_PARTS];
    parts_of(&instance->v, parts);
    instance->mode = (int)*next++;
    instance->start_time = *next++;
    instance->was_set = *next++ != 0.0;
    for (int k = 0; k < N_PARTS; k++)
        for (size_t i = 0; i < parts[k].count; i++) parts[k].numbers[i] = *next++;
    kind_forget(instance);
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
    if (right_count(instance, size, serialized_size(instance), function) != STATUS_OK) return STATUS_ERROR;
    size_t start = strlen(instance->token) + 1;
    memcpy(bytes, instance->token, start);
    memcpy((char *)bytes + start, saved, saved_size(instance));
    return STATUS_OK;
}

static Status deserialize(const Instance *instance, const void *bytes, size_t size, void **saved,
                          const char *function)
{
    if (!allowed(instance, ANY_MODE, function)) return STATUS_ERROR;
    size_t start = strlen(instance->token) + 1;
    if (size != serialized_size(instance) || memcmp(bytes, instance->token, start) != 0)
        return not_applicable(instance, function, "these bytes are no saved state of this model");
    double *room = room_for(instance, *saved, function);
    if (!room) return STATUS_ERROR;
    memcpy(room, (const char *)bytes + start, saved_size(instance));
    *saved = room;
    return STATUS_OK;
}
