/* One instance of a model, and what an importer may do with it: the same for FMI 2.0 and FMI 3.0. */
#ifndef INSTANCE_H
#define INSTANCE_H

#include "identity.h" /* MODEL_TOKEN: made for each model */
#include "model.h"

/* The numbers that both standards give to them. */
typedef enum { STATUS_OK, STATUS_WARNING, STATUS_DISCARD, STATUS_ERROR } Status;

/* The modes of the standards' state machines; sets of them are sums. */
enum { INSTANTIATED = 1, INITIALIZATION = 2, EVENT = 4, CONTINUOUS = 8, TERMINATED = 16, ANY_MODE = 31 };

typedef void AnyFunction(void);

struct Instance;
typedef void Deliver(const struct Instance *instance, Status status, const char *category, const char *message);

typedef struct Instance {
    Model model;
    int mode;
    double start_time;
    char *name;
    Deliver *deliver; /* passes a message to the importer in the way of its standard */
    AnyFunction *logger;
    void *environment;
} Instance;

/* What a saved state consists of. No pointers: it may be written to a file. */
typedef struct {
    int mode;
    double start_time;
    double time;
    double x[AT_LEAST_ONE(NX)], u[AT_LEAST_ONE(NU)], p[AT_LEAST_ONE(NP)];
} Snapshot;

/* Value references, in the order of modelDescription.xml. */
#define REF_TIME 0u
#define REF_X (REF_TIME + 1u)
#define REF_DERIVATIVE (REF_X + NX)
#define REF_U (REF_DERIVATIVE + NX)
#define REF_Y (REF_U + NU)
#define REF_P (REF_Y + NY)
#define REF_END (REF_P + NP)

#endif
