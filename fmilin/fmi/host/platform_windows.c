/* Windows: handles in place of descriptors, and an arena with a name. */
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform.h"

static HANDLE requests = INVALID_HANDLE_VALUE;
static HANDLE answers = INVALID_HANDLE_VALUE;

enum { LONGEST_PATH = 32768 };

static bool widen_text(const char *text, wchar_t *wide) {
  return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, LONGEST_PATH) > 0;
}

void *open_library(const char *path, char *reason, size_t size) {
  static wchar_t wide[LONGEST_PATH];
  static wchar_t folder[LONGEST_PATH];
  HMODULE library = NULL;
  if (widen_text(path, wide)) {
    memcpy(folder, wide, sizeof folder);
    wchar_t *last = wcsrchr(folder, L'\\');
    if (last != NULL) {
      *last = 0;
      SetCurrentDirectoryW(folder);
    }
    library = LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
  }
  if (library == NULL) {
    snprintf(reason, size, "Windows reports error %lu.", (unsigned long)GetLastError());
  }
  return (void *)library;
}

void close_library(void *library) {
  FreeLibrary((HMODULE)library);
}

function find_function(void *library, const char *name) {
  FARPROC symbol = GetProcAddress((HMODULE)library, name);
  function found;
  memcpy(&found, &symbol, sizeof found);
  return found;
}

static HANDLE handle(const char *text) {
  char *end;
  unsigned long long number = strtoull(text, &end, 10);
  return end == text || *end != 0 ? INVALID_HANDLE_VALUE : (HANDLE)(uintptr_t)number;
}

char *open_channel(const char *requests_text, const char *answers_text, const char *arena_text, size_t arena_size) {
  requests = handle(requests_text);
  answers = handle(answers_text);
  HANDLE arena = OpenFileMappingA(FILE_MAP_WRITE, FALSE, arena_text);
  if (requests == INVALID_HANDLE_VALUE || answers == INVALID_HANDLE_VALUE || arena == NULL) {
    return NULL;
  }
  SetHandleInformation(requests, HANDLE_FLAG_INHERIT, 0);
  SetHandleInformation(answers, HANDLE_FLAG_INHERIT, 0);
  char *memory = MapViewOfFile(arena, FILE_MAP_WRITE, 0, 0, arena_size);
  CloseHandle(arena);
  return memory;
}

bool read_bytes(void *to, size_t size) {
  char *place = to;
  while (size > 0) {
    DWORD count = 0;
    DWORD part = size > 1u << 20 ? 1u << 20 : (DWORD)size;
    if (!ReadFile(requests, place, part, &count, NULL) || count == 0) {
      return false;
    }
    place += count;
    size -= count;
  }
  return true;
}

bool write_bytes(const void *from, size_t size) {
  const char *place = from;
  while (size > 0) {
    DWORD count = 0;
    DWORD part = size > 1u << 20 ? 1u << 20 : (DWORD)size;
    if (!WriteFile(answers, place, part, &count, NULL) || count == 0) {
      return false;
    }
    place += count;
    size -= count;
  }
  return true;
}

#else
typedef int nothing_here; /* ISO C does not allow an empty file */
#endif
