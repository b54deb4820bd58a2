/* Windows: handles in place of descriptors, and an arena with a name. */
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform.h"

static HANDLE requests = INVALID_HANDLE_VALUE;
static HANDLE answers = INVALID_HANDLE_VALUE;

enum { LONGEST_PATH = 32768 };
static const char FILE_PREFIX[] = "file:";

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
    DWORD error = GetLastError();
    const char *meaning = error == ERROR_MOD_NOT_FOUND    ? ": a library that it needs is missing"
                          : error == ERROR_BAD_EXE_FORMAT ? ": it is not a library for this kind of machine"
                                                          : "";
    snprintf(reason, size, "Windows reports error %lu%s.", (unsigned long)error, meaning);
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

/*
 * Under wine the pipes are standard input and output, which become those of the host alone: the code of the FMU gets
 * nothing to read, and writes where errors are written.
 */
static HANDLE take_standard_handle(DWORD name) {
  HANDLE copy = INVALID_HANDLE_VALUE;
  DuplicateHandle(GetCurrentProcess(), GetStdHandle(name), GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS);
  if (name == STD_INPUT_HANDLE) {
    int nowhere = _open("NUL", _O_RDONLY);
    _dup2(nowhere, 0);
  } else {
    _dup2(2, 1);
  }
  SetStdHandle(name, (HANDLE)_get_osfhandle(name == STD_INPUT_HANDLE ? 0 : 1));
  return copy;
}

static HANDLE open_arena(const char *text) {
  if (strncmp(text, FILE_PREFIX, sizeof FILE_PREFIX - 1) != 0) {
    return OpenFileMappingA(FILE_MAP_WRITE, FALSE, text);
  }
  HANDLE file = CreateFileA(text + sizeof FILE_PREFIX - 1, GENERIC_READ | GENERIC_WRITE,
                            FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
  if (file == INVALID_HANDLE_VALUE) {
    return NULL;
  }
  HANDLE arena = CreateFileMappingA(file, NULL, PAGE_READWRITE, 0, 0, NULL);
  CloseHandle(file);
  return arena;
}

static void (*crash_reporter)(uint32_t code);

static LONG WINAPI report_exception(EXCEPTION_POINTERS *exception) {
  crash_reporter((uint32_t)exception->ExceptionRecord->ExceptionCode);
  TerminateProcess(GetCurrentProcess(), 1);
  return EXCEPTION_EXECUTE_HANDLER;
}

char *open_channel(const char *requests_text, const char *answers_text, const char *arena_text, size_t arena_size,
                   void (*report_crash)(uint32_t code)) {
  if (strcmp(requests_text, "stdin") == 0 && strcmp(answers_text, "stdout") == 0) {
    requests = take_standard_handle(STD_INPUT_HANDLE);
    answers = take_standard_handle(STD_OUTPUT_HANDLE);
    crash_reporter = report_crash;
    SetUnhandledExceptionFilter(report_exception);
  } else {
    requests = handle(requests_text);
    answers = handle(answers_text);
  }
  HANDLE arena = open_arena(arena_text);
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
