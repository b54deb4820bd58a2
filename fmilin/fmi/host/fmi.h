/* The functions of an FMU, behind one interface for FMI 1.0, 2.0 and 3.0. */
#ifndef FMILIN_FMI_H
#define FMILIN_FMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform.h"
#include "protocol.h"

enum { OK = 0, WARNING = 1, DISCARD = 2, ERROR = 3, FATAL = 4 };

struct fmu;
struct call;
typedef int32_t (*handler)(struct fmu *fmu, const struct call *call);

/* An instruction whose operands are checked, and whose function has been found. */
struct call {
  handler handle;
  function function;
  void *operands[OPERANDS]; /* of the present repetition */
  size_t counts[OPERANDS];
  size_t strides[OPERANDS];
  char *bases[OPERANDS]; /* of repetition 0 */
  uint64_t immediate;
  uint32_t type;
};

/* How an operation is carried out in one version of the standard; without a handler it does not exist there. */
struct entry {
  handler handle;
  const char *name; /* of the function of the FMU; NULL where there is none to be looked up */
};

/* What is different between versions and interfaces. */
struct standard {
  const char *prefix; /* of all functions, after the prefix of FMI 1.0 */
  struct entry entries[LAST_OPERATION + 1];
  const char *const *get_names; /* by value type, NULL where the standard has no such type */
  const char *const *set_names;
};

extern const struct standard fmi1_model_exchange, fmi1_co_simulation, fmi2, fmi3;

struct fmu {
  const struct standard *standard;
  enum interface interface;
  void *library;
  char *prefix;    /* of all symbols, FMI 1.0 only */
  void *component; /* NULL without an instance */
  void *saved[MAX_SAVED_STATES];
  char *identity[3]; /* name, token and resources of the instance: some FMUs keep the pointers */
  void *scratch;
  size_t scratch_size;
};

/* Room for conversions, valid until the next call; NULL where there is no memory. */
void *scratch(struct fmu *fmu, size_t size);

/* Copies name, token and resources of an INSTANTIATE; false where there is no memory. */
bool keep_identity(struct fmu *fmu, const struct call *call);

/* Handlers for functions that are the same in all versions. */
int32_t fill(struct fmu *fmu, const struct call *call);
int32_t copy(struct fmu *fmu, const struct call *call);
int32_t call_plain(struct fmu *fmu, const struct call *call);           /* (component) */
int32_t call_with_time(struct fmu *fmu, const struct call *call);       /* (component, time) */
int32_t call_with_doubles(struct fmu *fmu, const struct call *call);    /* (component, doubles, n) */
int32_t call_with_references(struct fmu *fmu, const struct call *call); /* (component, references, n) */
int32_t free_instance(struct fmu *fmu, const struct call *call);
int32_t save_state(struct fmu *fmu, const struct call *call);
int32_t restore_state(struct fmu *fmu, const struct call *call);
int32_t free_state(struct fmu *fmu, const struct call *call);

/* Values as an FMU has them, by type and version. */
enum storage { AS_DOUBLE, AS_FLOAT, AS_I8, AS_U8, AS_I16, AS_U16, AS_I32, AS_U32, AS_I64, AS_BYTE_FLAG, AS_INT_FLAG };

size_t storage_size(enum storage storage);
void widen(enum storage storage, const void *from, void *to, size_t count);
bool narrow(enum storage storage, const void *from, void *to, size_t count); /* false: a value is out of range */

/* Texts between an arena and pointers. */
int32_t write_texts(const char *const *texts, const size_t *sizes, size_t count, char *to, size_t room);
int32_t read_texts(struct fmu *fmu, const char *from, size_t room, size_t count, const char ***texts, size_t **sizes);

/* Takes a message of the FMU, or with a negative status one of the host; may be called from any thread. */
void log_record(int32_t status, const char *category, const char *text);

/* What an FMU of FMI 1.0 and 2.0 calls for its messages. */
void log_formatted(void *environment, const char *instance, int status, const char *category, const char *format, ...);

#endif
