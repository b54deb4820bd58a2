/* A model whose equations are matrices, as an Instance: see linear.h and instance.h. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "matrix.c"
#include "exponential.c"
#include "samples.c"
#ifndef EMBEDDED_SIZE
#include "resource.c"
#endif

#define FILE_NAME "linear.bin"
#define FIRST_BYTES "fmilin-linear-1\n"

/* How the file begins; then the token, then the numbers in the order of place_numbers(). */
typedef struct {
    char first_bytes[16];
    uint64_t order_of_bytes; /* ORDER_OF_BYTES where the file is read as it was written */
    uint64_t nx, nu, n_outputs, n_others;
    uint64_t token_size; /* with the zero at its end, a multiple of 8 */
    double sample_time;
} Header;

#define ORDER_OF_BYTES 0x0102030405060708u
#define MOST 100000u /* of anything */

static int header_is_good(const Header *h)
{
    return memcmp(h->first_bytes, FIRST_BYTES, sizeof h->first_bytes) == 0 && h->order_of_bytes == ORDER_OF_BYTES &&
           h->nx <= MOST && h->nu <= MOST && h->n_outputs <= MOST && h->n_others <= MOST && h->token_size >= 8 &&
           h->token_size <= 1024 && h->token_size % 8 == 0 && h->sample_time >= 0.0;
}

/* How many numbers the file has. */
static uint64_t count_numbers(const Header *h)
{
    uint64_t ny = h->n_outputs + h->n_others;
    return (h->nx + ny) * (h->nx + h->nu) + 4 * h->nx + 2 * h->nu + ny;
}

static void place_numbers(Instance *instance, const double *next)
{
    Kind *k = &instance->kind;
    const Values *v = &instance->v;
    const struct {
        const double **place;
        size_t count;
    } parts[] = {
        {&k->A, v->nx * v->nx}, {&k->B, v->nx * v->nu}, {&k->C, v->ny * v->nx}, {&k->D, v->ny * v->nu},
        {&k->f0, v->nx}, {&k->x0, v->nx}, {&k->x_start, v->nx}, {&instance->v.x_nominal, v->nx},
        {&k->u0, v->nu}, {&k->u_start, v->nu}, {&k->g0, v->ny},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i].place = next;
        next += parts[i].count;
    }
}

/* Where it comes from: a file of the FMU, or, where embedded.h has it, the library itself. */
#ifdef EMBEDDED_SIZE
typedef struct {
    size_t at;
} Source;

static int take(Source *source, void *to, size_t size)
{
    if (EMBEDDED_SIZE - source->at < size) return 0;
    (void)memcpy(to, EMBEDDED + source->at, size);
    source->at += size;
    return 1;
}

static int is_at_end(Source *source)
{
    return source->at == EMBEDDED_SIZE;
}
#else
typedef FILE Source;

static int take(Source *source, void *to, size_t size)
{
    return fread(to, 1, size, source) == size;
}

static int is_at_end(Source *source)
{
    return fgetc(source) == EOF;
}
#endif

/* Read everything behind the header: the token, then the numbers, and nothing more. */
static int read_rest(Instance *instance, const Header *h, Source *source)
{
    Values *v = &instance->v;
    v->nx = h->nx, v->nu = h->nu, v->ny = v->nd = h->n_outputs + h->n_others;
    v->nf = h->sample_time > 0.0 ? 0 : v->nx;
    v->n_extra = h->sample_time > 0.0 ? v->nu + v->ny : 0; /* inputs of the last sample, and outputs */
    instance->kind.n_outputs = h->n_outputs;
    instance->kind.sample_time = h->sample_time;
    uint64_t wanted = h->token_size + sizeof(double) * count_numbers(h);
    size_t size = (size_t)wanted;
    char *content = size == wanted ? malloc(size) : NULL;
    instance->kind.file = content;
    if (!content || !take(source, content, size) || !is_at_end(source)) return 0;
    content[h->token_size - 1] = '\0';
    instance->token = content;
    place_numbers(instance, (const double *)(const void *)(content + h->token_size));
    return 1;
}

static int read_model(Instance *instance, const char *resources, const char *function)
{
    Header header;
#ifdef EMBEDDED_SIZE
    Source embedded = {0}, *source = &embedded;
    (void)resources;
#else
    Source *source = open_resource(instance, resources, FILE_NAME, function);
    if (!source) return 0;
#endif
    int is_good = take(source, &header, sizeof header) && header_is_good(&header) &&
                  read_rest(instance, &header, source);
#ifndef EMBEDDED_SIZE
    (void)fclose(source);
#endif
    if (!is_good)
        (void)not_applicable(instance, function,
                             "the file '" FILE_NAME "' with the matrices is damaged, or too large for the memory");
    return is_good;
}

/* Room for the values. */
static int make_room(Instance *instance)
{
    Kind *k = &instance->kind;
    Values *v = &instance->v;
    size_t nx = v->nx, nu = v->nu, nz = v->nf + v->ny, ns = nx + nu + 1;
    double *next = k->room = calloc(5 * nx + 4 * nu + 1 + 2 * nz + ns + v->n_extra + 1, sizeof(double));
    if (!next) return 0;
    double **const places[] = {&v->x, &k->dx, &k->next, &k->balance, &v->u,     &k->du,
                               &v->slope, &v->z, &v->dz, &v->ds, &v->extra};
    const size_t counts[] = {nx, nx, 2 * nx, nx, nu, nu + 1, nu, nz, nz, ns, v->n_extra};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        *places[i] = next;
        next += counts[i];
    }
    v->p = next;
    v->time = &k->time;
    k->norm = balance(nx, k->A, k->balance);
    return 1;
}

static int kind_open(Instance *instance, const char *resources, const char *function)
{
    if (!read_model(instance, resources, function)) return 0;
    if (make_room(instance)) return 1;
    (void)not_applicable(instance, function, "there is no memory left");
    return 0;
}

static void kind_close(Instance *instance)
{
    Kind *k = &instance->kind;
    for (int i = 0; i < N_TRANSITIONS; i++) free(k->transitions[i].E);
    free(k->room);
    free(k->file);
}

static void kind_start(Instance *instance)
{
    const Kind *k = &instance->kind;
    const Values *v = &instance->v;
    for (size_t i = 0; i < v->nx; i++) v->x[i] = k->x_start[i];
    for (size_t i = 0; i < v->nu; i++) v->u[i] = k->u_start[i];
    for (size_t i = 0; i < v->n_extra; i++) v->extra[i] = i < v->nu ? k->u_start[i] : 0.0;
}

static void kind_forget(Instance *instance)
{
    instance->kind.rates_known = instance->kind.outputs_known = instance->kind.others_known = 0;
}

static void subtract(size_t n, const double *a, const double *b, double *difference)
{
    for (size_t i = 0; i < n; i++) difference[i] = a[i] - b[i];
}

/* r = r0 + M dx + N du */
static void affine(const Instance *instance, size_t rows, const double *r0, const double *M, const double *N, double *r)
{
    const Values *v = &instance->v;
    memcpy(r, r0, sizeof(double) * rows);
    add_product(rows, v->nx, M, instance->kind.dx, r);
    add_product(rows, v->nu, N, instance->kind.du, r);
}

static Status kind_evaluate(Instance *instance, size_t row, const char *function)
{
    (void)function;
    Kind *k = &instance->kind;
    const Values *v = &instance->v;
    int *known = row < v->nf ? &k->rates_known : row - v->nf < k->n_outputs ? &k->outputs_known : &k->others_known;
    if (*known) return STATUS_OK;
    if (shows_last_sample(instance)) { /* a sampled model has no derivatives: z begins with the outputs */
        memcpy(v->z, v->extra + v->nu, sizeof(double) * v->ny);
        k->outputs_known = k->others_known = 1;
        return STATUS_OK;
    }
    subtract(v->nx, v->x, k->x0, k->dx);
    subtract(v->nu, sees_inputs(instance) ? v->u : v->extra, k->u0, k->du);
    size_t first = known == &k->others_known ? k->n_outputs : 0;
    size_t count = known == &k->others_known ? v->ny - first : k->n_outputs;
    if (known == &k->rates_known) affine(instance, v->nf, k->f0, k->A, k->B, v->z);
    else affine(instance, count, k->g0 + first, k->C + first * v->nx, k->D + first * v->nu, v->z + v->nf + first);
    *known = 1;
    return STATUS_OK;
}

static Status kind_product(Instance *instance, const char *function)
{
    (void)function;
    const Kind *k = &instance->kind;
    const Values *v = &instance->v;
    const double *dx = v->ds, *du = v->ds + v->nx;
    memset(v->dz, 0, sizeof(double) * (v->nf + v->ny));
    add_product(v->nf, v->nx, k->A, dx, v->dz);
    add_product(v->nf, v->nu, k->B, du, v->dz);
    add_product(v->ny, v->nx, k->C, dx, v->dz + v->nf);
    if (sees_inputs(instance)) add_product(v->ny, v->nu, k->D, du, v->dz + v->nf);
    return STATUS_OK;
}

#if WITH_ADJOINT
static Status kind_adjoint(Instance *instance, const char *function)
{
    (void)function;
    const Kind *k = &instance->kind;
    const Values *v = &instance->v;
    double *dx = v->ds, *du = v->ds + v->nx;
    memset(v->ds, 0, sizeof(double) * (v->nx + v->nu + 1));
    add_transposed_product(v->nf, v->nx, k->A, v->dz, dx);
    add_transposed_product(v->nf, v->nu, k->B, v->dz, du);
    add_transposed_product(v->ny, v->nx, k->C, v->dz + v->nf, dx);
    if (sees_inputs(instance)) add_transposed_product(v->ny, v->nu, k->D, v->dz + v->nf, du);
    return STATUS_OK;
}
#endif

#include "linear_steps.c"
