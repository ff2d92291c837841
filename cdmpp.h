/* cdmpp -- predict the latency of a tensor program on a device, from C.
 *
 * The whole public surface. Everything declared here starts with cdmpp_ or
 * CDMPP_; nothing else in this repository is meant to be linked against.
 *
 *   cdmpp_tasks    the compute definitions that records refer to; read-only
 *                  once loaded, share it between threads.
 *   cdmpp_model    immutable after load; share it between threads.
 *   cdmpp_scratch  one per thread; holds the memory a prediction needs.
 *
 * Units: every latency is in seconds, every size in bytes, every work count in
 * operations. A name says otherwise when it is otherwise.
 * The library never prints, never exits and starts no thread by itself.
 */
#ifndef CDMPP_H
#define CDMPP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CDMPP_VERSION "0.1.0"

#if defined(__GNUC__)
#define CDMPP_API __attribute__((visibility("default")))
#else
#define CDMPP_API
#endif

/* One row per failure kind: X(name, exit code of the command, default text).
 * The enum, the names, the texts and the exit codes all come from here.
 * Exit code 3 ("done, some items failed") is not an error of one call: the
 * commands use it when lines were skipped. */
#define CDMPP_STATUS_MAP(X)                                            \
    X(OK, 0, "ok")                                                     \
    X(EUSAGE, 2, "bad command line")                                   \
    X(EPARSE, 4, "malformed input")                                    \
    X(ESCHEMA, 4, "well-formed input with a wrong or missing key")     \
    X(ERANGE, 4, "value outside its allowed range")                    \
    X(EUNSUPPORTED, 4, "valid input that this version does not know")  \
    X(ENOTASK, 4, "record of a task that no task file defines")        \
    X(EINVALID, 4, "schedule that does not fit its task")              \
    X(EREJECTED, 4, "program breaks a limit of its target")            \
    X(EMODEL, 5, "model and input do not fit each other")              \
    X(EIO, 1, "cannot read or write a file")                           \
    X(ENOMEM, 1, "out of memory")                                      \
    X(ENUMERIC, 1, "not a finite number")                              \
    X(EBACKEND, 6, "a library or device that is needed is missing")    \
    X(EINTERRUPTED, 130, "interrupted")                                \
    X(ENODATA, 4, "a data set that is asked for is not there")

typedef enum cdmpp_status {
#define CDMPP_X(name, exitcode, text) CDMPP_##name,
    CDMPP_STATUS_MAP(CDMPP_X)
#undef CDMPP_X
    CDMPP_STATUS_COUNT
} cdmpp_status;

/* Where and why something failed. Owned by the caller, never allocated:
 * declare one on the stack and pass its address. NULL means "I don't care". */
typedef struct cdmpp_err {
    cdmpp_status code;
    long line;       /* 1-based line of the input; 0 if not about a line   */
    char path[192];  /* input file, tail kept when too long; "" if none    */
    char key[96];    /* dotted path inside the line: "i[1][1][4]"          */
    char msg[224];   /* what was expected and what was found               */
    const char *src; /* our own source location, for bug reports           */
    int src_line;
} cdmpp_err;

/* Render "path:line: key: msg [NAME]" into buf (n bytes), always
 * NUL-terminated. Returns buf. */
CDMPP_API char *cdmpp_err_format(const cdmpp_err *err, char *buf, size_t n);
/* "EPARSE" for CDMPP_EPARSE; never NULL. */
CDMPP_API const char *cdmpp_status_name(cdmpp_status st);
/* The exit code that a command gives for `st`. */
CDMPP_API int cdmpp_exit_code(cdmpp_status st);
CDMPP_API const char *cdmpp_version(void);

typedef struct cdmpp_tasks cdmpp_tasks;
typedef struct cdmpp_model cdmpp_model;
typedef struct cdmpp_scratch cdmpp_scratch;

/* An empty registry; fill it, then share it. Errors: ENOMEM. */
CDMPP_API cdmpp_status cdmpp_tasks_new(cdmpp_tasks **out, cdmpp_err *err);
/* Add every task of all_tasks.pkl, a *.task.pkl, our own text form, or of all such
 * files in a folder. Errors: EIO, EPARSE, ESCHEMA, EUNSUPPORTED, ENOMEM. */
CDMPP_API cdmpp_status cdmpp_tasks_load(cdmpp_tasks *t, const char *path, cdmpp_err *err);
CDMPP_API size_t cdmpp_tasks_count(const cdmpp_tasks *t);
CDMPP_API void cdmpp_tasks_free(cdmpp_tasks *t); /* NULL is fine; after its scratches */

/* Load a model file of cdmpp-train. Errors: EIO, EPARSE (damaged), EUNSUPPORTED
 * (newer), EMODEL (made for other features), ENOMEM, EBACKEND. */
CDMPP_API cdmpp_status cdmpp_model_load(const char *path, cdmpp_model **out, cdmpp_err *err);
/* Where the model comes from and how good it is: one JSON object, owned by the model. */
CDMPP_API const char *cdmpp_model_info(const cdmpp_model *m);
CDMPP_API void cdmpp_model_free(cdmpp_model *m); /* NULL is fine; after its scratches */

/* Borrows model and tasks. `device`: the name of one of the model's devices, which
 * then stands for all records, or NULL: the record's own (-model= of its target);
 * a model of a single device needs neither. Errors: EMODEL, ENOMEM. */
CDMPP_API cdmpp_status cdmpp_scratch_new(const cdmpp_model *m, const cdmpp_tasks *t, const char *device,
                                         cdmpp_scratch **out, cdmpp_err *err);
CDMPP_API void cdmpp_scratch_free(cdmpp_scratch *s); /* NULL is fine */

/* Predict the program of one measure record: `len` bytes of JSON, no newline
 * needed; its cost is not looked at. Writes seconds, finite and > 0. One scratch
 * a thread. Errors: EPARSE, ESCHEMA, ERANGE, EUNSUPPORTED, ENOTASK, EINVALID,
 * EREJECTED, EMODEL, ENUMERIC, ENOMEM; *latency_s is untouched on error. */
CDMPP_API cdmpp_status cdmpp_predict_line(cdmpp_scratch *s, const char *line, size_t len, double *latency_s,
                                          cdmpp_err *err);

#ifdef __cplusplus
}
#endif
#endif
