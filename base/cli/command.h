/* The frame of a command: what every main() does before and after its own work.
 *
 *   static cdmpp_status run(cd_command_run *r, void *options, cdmpp_err *err) { ... }
 *
 *   int main(int argc, char **argv) {
 *       options o = {.batch = -1};
 *       return cd_command_main(&table, argc, argv, &o, run);
 *   }
 *
 *   argv ──> options, --help, --version ──> signals ──> run() ──> standard output written? ──> error reported once ──> exit code
 *
 * | exit code             | when                                                        |
 * | 0                     | run() succeeded, or help was printed                        |
 * | r->exit_code, often 3 | run() succeeded and set it: some items could not be used    |
 * | 2                     | the command line is wrong                                   |
 * | cdmpp_exit_code(st)   | run() failed with st; 130 after a signal                    |
 *
 * For commands only: it prints. */
#ifndef CD_COMMAND_H
#define CD_COMMAND_H
#include "base/cli/log.h"
#include "base/cli/option.h"
#include "base/cli/signals.h"

typedef struct cd_command_run {
    const cd_command *command;
    cd_cli_args said;             /* operands and common options as parsed */
    cd_log log;
    int argc;                     /* the command line as given */
    char **argv;
    volatile sig_atomic_t *stop;  /* number of the signal that asks the command to end, 0: none */
    int exit_code;                /* of a success; run() may set 3 */
} cd_command_run;

/* The command's own work. `options` is the struct that was filled from the table. An error is reported by the caller, unless
 * run() has reported it and cleared *err (cd_command_reported). */
typedef cdmpp_status cd_command_fn(cd_command_run *r, void *options, cdmpp_err *err);

/* All of main(). `options` holds the defaults. Returns the exit code. */
int cd_command_main(const cd_command *c, int argc, char **argv, void *options, cd_command_fn *run);
/* For run(): messages of level DEBUG too, unless --quiet was given. */
void cd_command_verbose(cd_command_run *r, bool verbose);
/* For run(): the error is on the screen already, for instance as a list of mistakes. Returns st. */
cdmpp_status cd_command_reported(cdmpp_status st, cdmpp_err *err);

/* ---- parts, for commands with another frame ---- */
/* False: nothing is left to do, *code is the exit code (0 or 1: help, 2: usage) and there is nothing to end. */
bool cd_command_begin(cd_command_run *f, const cd_command *c, int argc, char **argv, void *to, int *code);
/* Frees what cd_command_begin made. */
void cd_command_end(cd_command_run *f);
/* Prints "cdmpp-train: <message>" and where help is; returns the exit code. */
int cd_command_usage(cd_command_run *f, const cdmpp_err *err);

/* ---- output ---- */
/* The version and the libraries in use, as lines or as one JSON object. */
void cd_command_version(cd_buf *b, const char *name, bool json);
/* {"schema":..,"command":..,"result":<result>,"warnings":[]} and a line end; `result` is JSON, and freed. */
void cd_command_json(cd_buf *b, const char *schema, const char *command, CD_TAKE cd_buf *result);
/* A text as a JSON string; `text` is freed. */
void cd_command_quote(cd_buf *b, CD_TAKE cd_buf *text);
/* All of the text to standard output; `b` is freed. Errors: EIO, ENOMEM. */
cdmpp_status cd_command_print(CD_TAKE cd_buf *b, cdmpp_err *err);
#endif
