/* What the versions of FMI have in common: calls of the same form, conversions of values. */
#include "fmi.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16 };

void *scratch(struct fmu *fmu, size_t size) {
  if (size > fmu->scratch_size || fmu->scratch == NULL) {
    void *larger = realloc(fmu->scratch, size + ALIGNMENT);
    if (larger == NULL) {
      return NULL;
    }
    fmu->scratch = larger;
    fmu->scratch_size = size + ALIGNMENT;
  }
  return fmu->scratch;
}

bool keep_identity(struct fmu *fmu, const struct call *call) {
  for (int i = 0; i < 3; i++) {
    size_t size = call->counts[i];
    char *text = malloc(size + 1);
    if (text == NULL) {
      return false;
    }
    memcpy(text, call->operands[i], size);
    text[size] = 0;
    free(fmu->identity[i]);
    fmu->identity[i] = text;
  }
  return true;
}

int32_t fill(struct fmu *fmu, const struct call *call) {
  (void)fmu;
  double value;
  memcpy(&value, &call->immediate, sizeof value);
  double *to = call->operands[0];
  for (size_t i = 0; i < call->counts[0]; i++) {
    to[i] = value;
  }
  return OK;
}

int32_t copy(struct fmu *fmu, const struct call *call) {
  (void)fmu;
  memmove(call->operands[1], call->operands[0], call->counts[0] * sizeof(double));
  return OK;
}

int32_t call_plain(struct fmu *fmu, const struct call *call) {
  return ((int (*)(void *))call->function)(fmu->component);
}

int32_t call_with_time(struct fmu *fmu, const struct call *call) {
  return ((int (*)(void *, double))call->function)(fmu->component, *(double *)call->operands[0]);
}

int32_t call_with_doubles(struct fmu *fmu, const struct call *call) {
  return ((int (*)(void *, double *, size_t))call->function)(fmu->component, call->operands[0], call->counts[0]);
}

int32_t call_with_references(struct fmu *fmu, const struct call *call) {
  return ((int (*)(void *, uint32_t *, size_t))call->function)(fmu->component, call->operands[0], call->counts[0]);
}

int32_t free_instance(struct fmu *fmu, const struct call *call) {
  ((void (*)(void *))call->function)(fmu->component);
  fmu->component = NULL;
  memset(fmu->saved, 0, sizeof fmu->saved);
  return OK;
}

static void **saved_state(struct fmu *fmu, const struct call *call) {
  return call->immediate < MAX_SAVED_STATES ? &fmu->saved[call->immediate] : NULL;
}

int32_t save_state(struct fmu *fmu, const struct call *call) {
  void **state = saved_state(fmu, call);
  return state == NULL ? HOST_MALFORMED : ((int (*)(void *, void **))call->function)(fmu->component, state);
}

int32_t restore_state(struct fmu *fmu, const struct call *call) {
  void **state = saved_state(fmu, call);
  if (state == NULL || *state == NULL) {
    return HOST_MALFORMED;
  }
  return ((int (*)(void *, void *))call->function)(fmu->component, *state);
}

int32_t free_state(struct fmu *fmu, const struct call *call) {
  void **state = saved_state(fmu, call);
  if (state == NULL || *state == NULL) {
    return HOST_MALFORMED;
  }
  int status = ((int (*)(void *, void **))call->function)(fmu->component, state);
  *state = NULL;
  return status;
}

size_t storage_size(enum storage storage) {
  switch (storage) {
    case AS_DOUBLE:
    case AS_I64:
      return 8;
    case AS_FLOAT:
    case AS_I32:
    case AS_U32:
    case AS_INT_FLAG:
      return 4;
    case AS_I16:
    case AS_U16:
      return 2;
    case AS_I8:
    case AS_U8:
    case AS_BYTE_FLAG:
      return 1;
  }
  return 8;
}

/* One case of a conversion: `from` is read as one type, `to` is written as another. */
#define CONVERT(from_type, to_type)                          \
  for (size_t i = 0; i < count; i++) {                       \
    ((to_type *)to)[i] = (to_type)((const from_type *)from)[i]; \
  }                                                          \
  break

void widen(enum storage storage, const void *from, void *to, size_t count) {
  switch (storage) {
    case AS_DOUBLE:
    case AS_I64:
      memcpy(to, from, count * 8);
      break;
    case AS_FLOAT:
      CONVERT(float, double);
    case AS_I8:
      CONVERT(int8_t, int64_t);
    case AS_U8:
      CONVERT(uint8_t, int64_t);
    case AS_I16:
      CONVERT(int16_t, int64_t);
    case AS_U16:
      CONVERT(uint16_t, int64_t);
    case AS_I32:
      CONVERT(int32_t, int64_t);
    case AS_U32:
      CONVERT(uint32_t, int64_t);
    case AS_BYTE_FLAG:
      for (size_t i = 0; i < count; i++) {
        ((int64_t *)to)[i] = ((const uint8_t *)from)[i] != 0;
      }
      break;
    case AS_INT_FLAG:
      for (size_t i = 0; i < count; i++) {
        ((int64_t *)to)[i] = ((const int32_t *)from)[i] != 0;
      }
      break;
  }
}

static bool within(const int64_t *values, size_t count, int64_t least, int64_t most) {
  for (size_t i = 0; i < count; i++) {
    if (values[i] < least || values[i] > most) {
      return false;
    }
  }
  return true;
}

#define NARROW(to_type, least, most)         \
  if (!within(from, count, least, most)) {   \
    return false;                            \
  }                                          \
  CONVERT(int64_t, to_type)

bool narrow(enum storage storage, const void *from, void *to, size_t count) {
  switch (storage) {
    case AS_DOUBLE:
    case AS_I64:
      memcpy(to, from, count * 8);
      break;
    case AS_FLOAT:
      CONVERT(double, float);
    case AS_I8:
      NARROW(int8_t, INT8_MIN, INT8_MAX);
    case AS_U8:
      NARROW(uint8_t, 0, UINT8_MAX);
    case AS_I16:
      NARROW(int16_t, INT16_MIN, INT16_MAX);
    case AS_U16:
      NARROW(uint16_t, 0, UINT16_MAX);
    case AS_I32:
      NARROW(int32_t, INT32_MIN, INT32_MAX);
    case AS_U32:
      NARROW(uint32_t, 0, UINT32_MAX);
    case AS_BYTE_FLAG:
      NARROW(uint8_t, 0, 1);
    case AS_INT_FLAG:
      NARROW(int32_t, 0, 1);
  }
  return true;
}

int32_t write_texts(const char *const *texts, const size_t *sizes, size_t count, char *to, size_t room) {
  for (size_t i = 0; i < count; i++) {
    uint32_t size = 0;
    if (room < sizeof size) {
      return HOST_TOO_LONG;
    }
    room -= sizeof size;
    const char *text = texts[i];
    if (text != NULL) {
      size_t length = 0;
      if (sizes != NULL) {
        length = sizes[i];
      } else {
        while (length <= room && text[length] != 0) {
          length++;
        }
      }
      if (length > room) {
        return HOST_TOO_LONG;
      }
      size = (uint32_t)length;
    }
    memcpy(to, &size, sizeof size);
    to += sizeof size;
    if (size > 0) {
      memcpy(to, text, size);
    }
    to += size;
    room -= size;
  }
  return OK;
}

/* Makes pointers to `count` texts and their sizes, in scratch memory; each text gets a final zero. */
int32_t read_texts(struct fmu *fmu, const char *from, size_t room, size_t count, const char ***texts, size_t **sizes) {
  if (count > room / sizeof(uint32_t)) {
    return HOST_MALFORMED;
  }
  size_t tables = count * (sizeof(char *) + sizeof(size_t));
  char *place = scratch(fmu, tables + room + count + 1);
  if (place == NULL) {
    return HOST_NO_MEMORY;
  }
  *texts = (const char **)(void *)place;
  *sizes = (size_t *)(void *)(place + count * sizeof(char *));
  place += tables;
  for (size_t i = 0; i < count; i++) {
    uint32_t size;
    if (room < sizeof size) {
      return HOST_MALFORMED;
    }
    memcpy(&size, from, sizeof size);
    from += sizeof size;
    room -= sizeof size;
    if (size > room) {
      return HOST_MALFORMED;
    }
    (*texts)[i] = place;
    (*sizes)[i] = size;
    memcpy(place, from, size);
    place[size] = 0;
    place += size + 1;
    from += size;
    room -= size;
  }
  return OK;
}
