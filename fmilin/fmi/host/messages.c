/* Log records: the newest are kept until the next answer. */
#include "messages.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 32, LONGEST_TEXT = 2000, LONGEST_CATEGORY = 80 };

struct kept {
  int32_t status;
  char category[LONGEST_CATEGORY];
  char text[LONGEST_TEXT];
};

static struct kept records[KEPT];
static uint32_t total; /* records since the last answer */
static atomic_flag is_busy = ATOMIC_FLAG_INIT;
static struct progress *repeated;

void repeat_last_text(struct progress *progress) {
  repeated = progress;
}

static void enter(void) {
  while (atomic_flag_test_and_set_explicit(&is_busy, memory_order_acquire)) {
  }
}

static void leave(void) {
  atomic_flag_clear_explicit(&is_busy, memory_order_release);
}

static void copy_text(char *to, const char *from, size_t room) {
  size_t i = 0;
  while (from != NULL && i + 1 < room && from[i] != 0) {
    to[i] = from[i];
    i++;
  }
  to[i] = 0;
}

void log_record(int32_t status, const char *category, const char *text) {
  if (status < 0 && category == NULL) {
    category = "host";
  }
  enter();
  struct kept *record = &records[total % KEPT];
  record->status = status;
  copy_text(record->category, category, sizeof record->category);
  copy_text(record->text, text, sizeof record->text);
  if (repeated != NULL && status >= 0) {
    copy_text(repeated->last_text, text, sizeof repeated->last_text);
  }
  total++;
  leave();
}

void log_formatted(void *environment, const char *instance, int status, const char *category, const char *format, ...) {
  (void)environment;
  (void)instance;
  char text[LONGEST_TEXT];
  if (format == NULL) {
    format = "";
  }
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  log_record(status < 0 ? ERROR_OF_UNKNOWN_STATUS : status, category == NULL ? "" : category, written < 0 ? format : text);
}

size_t take_records(char *to, size_t room, uint32_t *dropped) {
  if (total == 0) {
    *dropped = 0;
    return 0;
  }
  enter();
  uint32_t first = total > KEPT ? total - KEPT : 0;
  size_t size = 0;
  for (uint32_t i = first; i < total; i++) {
    const struct kept *kept = &records[i % KEPT];
    struct record head = {kept->status, (uint16_t)strlen(kept->category), (uint16_t)strlen(kept->text)};
    if (size + sizeof head + head.category_size + head.text_size > room) {
      break;
    }
    memcpy(to + size, &head, sizeof head);
    size += sizeof head;
    memcpy(to + size, kept->category, head.category_size);
    size += head.category_size;
    memcpy(to + size, kept->text, head.text_size);
    size += head.text_size;
  }
  *dropped = first;
  total = 0;
  leave();
  return size;
}
