/* One instance of a model, and what an importer may do with it: the same for FMI 2.0 and FMI 3.0, and for
 * every kind of model.
 *
 * The kinds are equations made for one model (symbolic.c), matrices that are read from a file (linear.c), and steps in
 * C (block.c).
 * identity.h, which is made for each FMU, includes the header of one of them.
 */
#ifndef INSTANCE_H
#define INSTANCE_H

#include <stddef.h>

#include "identity.h" /* defines Kind and KIND_SOURCE */

/* The numbers that both standards give to them. */
typedef enum { STATUS_OK, STATUS_WARNING, STATUS_DISCARD, STATUS_ERROR } Status;

/* The modes of the standards' state machines; sets of them are sums. */
enum { INSTANTIATED = 1, INITIALIZATION = 2, EVENT = 4, CONTINUOUS = 8, STEP = 16, TERMINATED = 32, ANY_MODE = 63 };

typedef void AnyFunction(void);

struct Instance;
typedef void Deliver(const struct Instance *instance, Status status, const char *category, const char *message);

/* Where the values of a model are kept, and how many there are. Value references count through time, x, the
 * derivatives, u, the computed variables and p, in this order. */
typedef struct {
    size_t nx;      /* states */
    size_t nf;      /* derivatives of the states: as many, or none in a sampled model */
    size_t nu;      /* inputs */
    size_t ny;      /* computed outputs and local variables ... */
    size_t nd;      /* ... of which the first nd have partial derivatives */
    size_t np;      /* parameters */
    size_t n_extra; /* further numbers that a saved state consists of */
    double *time, *x, *u, *p, *extra;
    double *slope;           /* du/dt, (nu,): how inputs go on during a step of co-simulation */
    double *z;               /* derivatives, then computed variables, (nf + ny,) */
    double *ds, *dz;         /* seeds and results: over (x, u, time, p), and over z */
    const double *x_nominal;
} Values;

typedef struct Instance {
    Values v;
    Kind kind;
    const char *token; /* which model this is; belongs to the kind */
    int mode;
    int co_simulation;
    int was_set; /* whether a variable was set, or the instance restored or reset, since the last step */
    double start_time;
    double tolerance; /* asked for by the importer, or 0 */
    char *name;
    Deliver *deliver; /* passes a message to the importer in the way of its standard */
    AnyFunction *logger;
    void *environment;
} Instance;

/* What every kind of model defines; a failure is told to the importer, in the name of `function`.
 *
 * int kind_open(Instance *, const char *resources, const char *function)  fill in v and token
 * void kind_close(Instance *)
 * void kind_start(Instance *)                                  x, u, p and what belongs to them: start values
 * void kind_forget(Instance *)                                 time, x, u or p has changed
 * Status kind_evaluate(Instance *, size_t row, const char *function)   bring v.z[row] to the present point
 * Status kind_product(Instance *, const char *function)        dz = (partial derivatives) ds
 * Status kind_adjoint(Instance *, const char *function)        ds = (partial derivatives)' dz
 * Status kind_step(Instance *, double h, const char *function)         x at time + h; time and u stay
 * KIND_HAS_DERIVATIVES, KIND_IS_SAMPLED(instance)
 */

#endif
