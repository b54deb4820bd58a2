#include "values.h"

#include <string.h>

/* Values of all types go through one form of call: on every platform a pointer to numbers is passed as any other. */
typedef int (*values_function)(void *, const uint32_t *, size_t, void *);

static enum storage storage_of(uint32_t type, enum storage flag) {
  if (type == INT32) {
    return AS_I32;
  }
  return type == BOOLEAN ? flag : AS_DOUBLE;
}

int32_t get_early_values(struct fmu *fmu, const struct call *call, enum storage flag) {
  values_function get = (values_function)call->function;
  const uint32_t *references = call->operands[0];
  size_t count = call->counts[0];
  if (call->type == TEXT) {
    const char **texts = scratch(fmu, (count + 1) * sizeof(char *));
    if (texts == NULL) {
      return HOST_NO_MEMORY;
    }
    memset(texts, 0, (count + 1) * sizeof(char *));
    int status = get(fmu->component, references, count, texts);
    if (status > WARNING) {
      return status;
    }
    int32_t written = write_texts(texts, NULL, count, call->operands[1], call->counts[1]);
    return written == OK ? status : written;
  }
  if (call->counts[1] != count) {
    return HOST_MALFORMED;
  }
  enum storage storage = storage_of(call->type, flag);
  if (storage == AS_DOUBLE) {
    return get(fmu->component, references, count, call->operands[1]);
  }
  void *values = scratch(fmu, count * storage_size(storage));
  if (values == NULL) {
    return HOST_NO_MEMORY;
  }
  memset(values, 0, count * storage_size(storage));
  int status = get(fmu->component, references, count, values);
  widen(storage, values, call->operands[1], count);
  return status;
}

int32_t set_early_values(struct fmu *fmu, const struct call *call, enum storage flag) {
  values_function set = (values_function)call->function;
  const uint32_t *references = call->operands[0];
  size_t count = call->counts[0];
  if (call->type == TEXT) {
    const char **texts;
    size_t *sizes;
    int32_t status = read_texts(fmu, call->operands[1], call->counts[1], count, &texts, &sizes);
    return status == OK ? set(fmu->component, references, count, texts) : status;
  }
  if (call->counts[1] != count) {
    return HOST_MALFORMED;
  }
  enum storage storage = storage_of(call->type, flag);
  if (storage == AS_DOUBLE) {
    return set(fmu->component, references, count, call->operands[1]);
  }
  void *values = scratch(fmu, count * storage_size(storage));
  if (values == NULL) {
    return HOST_NO_MEMORY;
  }
  if (!narrow(storage, call->operands[1], values, count)) {
    return HOST_MALFORMED;
  }
  return set(fmu->component, references, count, values);
}

int32_t list_categories(struct fmu *fmu, const struct call *call, const char ***categories, size_t *count) {
  const char *text = call->operands[0];
  size_t size = call->counts[0];
  *count = 0;
  for (size_t i = 0; i < size; i++) {
    *count += text[i] == 0;
  }
  if (size > 0 && text[size - 1] != 0) {
    return HOST_MALFORMED;
  }
  *categories = scratch(fmu, (*count + 1) * sizeof(char *));
  if (*categories == NULL) {
    return HOST_NO_MEMORY;
  }
  for (size_t i = 0; i < *count; i++) {
    (*categories)[i] = text;
    text += strlen(text) + 1;
  }
  return OK;
}
