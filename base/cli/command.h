/* face -- what every command does with its first words: read them, answer --help and
 * --version, complain in one form, set up its log.
 *
 *   int main(..) { if (!cd_command_begin(&f, &command, argc, argv, &options, &code)) return code; ...
 *                  cd_command_end(&f); }
 *
 * For commands only: it prints. */
#ifndef CD_COMMAND_H
#define CD_COMMAND_H
#include "base/cli/log.h"
#include "base/cli/option.h"

typedef struct cd_command_run {
    const cd_command *command;
    cd_cli_args said;
    cd_log log;
} cd_command_run;

/* False: nothing is left to do, *code is the exit code (0 or 1: help, 2: usage) and
 * there is nothing to end. */
bool cd_command_begin(cd_command_run *f, const cd_command *c, int argc, char **argv, void *to, int *code);
void cd_command_end(cd_command_run *f);
/* "cdmpp-train: <message>", then where help is; the exit code. */
int cd_command_usage(cd_command_run *f, const cdmpp_err *err);
/* The version and the libraries in use, as lines or as one JSON object. */
void cd_command_version(cd_buf *b, const char *name, bool json);
/* {"schema":..,"command":..,"result":<result>,"warnings":[]} and a line end; `result` is JSON, freed. */
void cd_command_json(cd_buf *b, const char *schema, const char *command, cd_buf *result);
/* A text as JSON, freed. */
void cd_command_quote(cd_buf *b, cd_buf *text);
/* All of the text to standard output, and freed. Errors: EIO, ENOMEM. */
cdmpp_status cd_command_print(cd_buf *b, cdmpp_err *err);
#endif
