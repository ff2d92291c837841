/* The door of base/cli: other rooms include this header and no other of the room.
 *
 * What the commands share, and only they, because it prints. A command is a table of options and
 * one function that runs (command). The table also gives --help, the manual page and shell
 * completion (option). Messages go to a log on standard error (log), long work shows a bar
 * (progress), ^C ends a command in order (signals). */
#ifndef CD_BASE_CLI_DOOR_H
#define CD_BASE_CLI_DOOR_H
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text/text.h"

/* Messages of a command to its user, on standard error.
 *
 *   cdmpp-extract: warning: a.json:3: i[1][1][4]: ... [EPARSE]
 *   {"level":"warning","command":"cdmpp-extract","text":"a.json:3: ..."}   (json)
 *
 * For commands only: the library never prints. The state is a struct that main()
 * owns and passes down; one log may be used by many threads, a line is written
 * with one call, so lines never mix. */

typedef enum cd_log_level { CD_LOG_ERROR, CD_LOG_WARNING, CD_LOG_INFO, CD_LOG_DEBUG } cd_log_level;

typedef struct cd_log {
    const char *command; /* shown first; "" for none. Borrowed */
    FILE *out;           /* borrowed */
    cd_log_level level;  /* messages above it are dropped: --quiet ERROR, --verbose DEBUG */
    bool json;           /* one JSON object a line */
    pthread_mutex_t lock;
    bool partial; /* the cursor stands behind a progress bar */
    bool colour;  /* "error:" and "warning:" stand out */
    bool keep;    /* warnings are kept too, also those that `level` drops */
    cd_buf kept;  /* as JSON strings with commas between them */
    size_t n_kept;
} cd_log;

/* May `out` carry a line that redraws itself: a terminal that is not dumb? And colours:
 * the same without NO_COLOR (no-color.org)? NULL: no. */
bool cd_log_redraws(FILE *out);
bool cd_log_colours(FILE *out);
/* A line in place of the last one that was drawn, cut to `room` bytes; the next message takes it
 * away. Nothing where log->out is NULL. */
void cd_log_redraw(cd_log *log, const char *text, int room);

/* Plain lines up to INFO, in colour where cd_log_colours. out NULL: nothing is printed. */
void cd_log_init(cd_log *log, const char *command, FILE *out);
void cd_log_done(cd_log *log); /* frees the kept warnings and the lock */
/* The kept warnings as a JSON list of texts, in the order in which they were said; more than
 * CD_LOG_KEPT are counted in a last one. NULL is fine: []. */
void cd_log_put_kept(const cd_log *log, cd_buf *b);
enum { CD_LOG_KEPT = 1000 };
/* Of these three a log of NULL is fine: the line is dropped. A text that does not fit 2 kB is cut
 * and ends in "...". */
void cd_log_put(cd_log *log, cd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Seconds between two lines of progress where no line can be redrawn: 10 in JSON and when
 * verbose, else for ever, so that a log has results only. */
double cd_log_every_s(const cd_log *log);
/* The error in cdmpp_err_format's form; in JSON also its parts. */
void cd_log_err(cd_log *log, cd_log_level level, const cdmpp_err *err);
/* Lines that need no prefix: written as they are, in JSON one object each. */
void cd_log_lines(cd_log *log, cd_log_level level, const char *text);

/* The options of a command as one table: parsed, shown, documented, completed.
 *
 *   static const cd_option row[] = {
 *       {"jobs", 'j', "N", CD_OPTION_INT, offsetof(options, jobs), "1..1024", 0, "Threads ..."},
 *       ...
 *
 *   argv  -> row by its long or short name -> checked -> into the struct at its offset
 *   table -> --help, --help=all, --help=man, --help=bash, --help=zsh
 *
 * (1) "--name=value", "--name value", "-n value", "-nvalue"; flags cluster: "-qj4".
 * (2) No abbreviations: a new option never changes what an old command line means.
 *     An unknown name is an error that names the one that was probably meant.
 * (3) "--" ends the options, "-" is an operand, options and operands mix.
 * (4) Of an option given twice the last one counts, lists take all.
 * (5) Rows that every command has are added here: --json, --quiet, --log-format,
 *     --help, --usage, --version; their values are in cd_cli_args.
 * Texts are borrowed from argv. No state, any thread. */

typedef enum cd_option_kind {
    CD_OPTION_FLAG, /* bool                                                  */
    CD_OPTION_INT,  /* int; `values`: "lo..hi"                               */
    CD_OPTION_WORD, /* int: position in `values`, "text|json"                */
    CD_OPTION_TEXT, /* const char *                                          */
    CD_OPTION_FILE, /* const char *; `values`: patterns "*.h5|*.json", NULL: any file */
    /* the same, of a file that is written: no other option or operand may name it */
    CD_OPTION_OUTPUT,
    CD_OPTION_FOLDER, /* const char *                                          */
    CD_OPTION_TEXTS,  /* cd_texts, may be given many times                     */
    CD_OPTION_FILES   /* the same, of files                                    */
} cd_option_kind;

typedef struct cd_option {
    const char *name; /* without "--" */
    char letter;      /* of the short form; 0: none */
    /* "FILE"; "[FORM]": may be left out, and is the first of `values` then; NULL: a flag */
    const char *arg;
    cd_option_kind kind;
    size_t offset;      /* into the struct */
    const char *values; /* as above */
    int group;          /* index of its title in cd_command.group */
    /* a sentence without its full stop; NULL: an older name, accepted and not shown */
    const char *help;
} cd_option;

/* An option in a line of --help: its name and a shorter text. A list ends with name NULL. */
typedef struct cd_option_usual {
    const char *name, *text;
} cd_option_usual;

/* Parsed values of the options that every command has, and the operands. */
typedef struct cd_cli_args {
    cd_texts operand;
    bool help_asked, usage, version, json, quiet;
    int help, log_format; /* cd_cli_help_form; 1: JSON */
    /* (n_row of the command) which of its own options stood in the line; NULL: none */
    bool *given;
    cd_arena arena; /* of the lists */
} cd_cli_args;

typedef enum cd_cli_help_form {
    CD_CLI_HELP_TEXT, /* at most CD_OPTION_HELP_LINES lines */
    CD_CLI_HELP_ALL,
    CD_CLI_HELP_MAN,
    CD_CLI_HELP_BASH,
    CD_CLI_HELP_ZSH
} cd_cli_help_form;

typedef struct cd_command {
    const char *name;  /* "cdmpp-train"; of a verb "cdmpp-mpi train" */
    const char *brief; /* what it does, lower case, no full stop */
    /* lines of the synopsis without the name; NULL ends. NULL: a verb that is a program of its own,
     * "cdmpp train" is cdmpp-train */
    const char *const *use;
    const char *about; /* paragraphs, parted by "\n\n" */
    const cd_option *row;
    size_t n_row;
    const char *const *group; /* titles by cd_option.group; NULL: none */
    /* patterns of files that operands are, "": any; NULL: there are none */
    const char *operand;
    const char *const *example;           /* pairs: what, command line; NULL ends */
    const char *const *file;              /* pairs: path, what; NULL ends */
    const char *const *see;               /* "cdmpp-train(1)"; NULL ends */
    const struct cd_command *const *verb; /* its first operand chooses one of these; NULL ends */
    /* Rules between options, after all were read; NULL: none. Errors: EUSAGE. */
    cdmpp_status (*check)(void *to, const cd_cli_args *said, cdmpp_err *err);
    /* what most people need, for --help; NULL: all options, each cut to a line */
    const cd_option_usual *usual;
} cd_command;

/* Fill `to` and `said` (zeroed by the caller) from argv[1..]. With --help, --usage or --version
 * nothing is checked any more. Errors: EUSAGE (also: two rows of the table have one name), ENOMEM.
 * Free `said` after an error too. */
cdmpp_status cd_option_read(const cd_command *c, int argc, char **argv, void *to, cd_cli_args *said,
                            cdmpp_err *err);
void cd_cli_args_free(cd_cli_args *said);
/* Whether files that are written (CD_OPTION_OUTPUT) are none of those that other options and
 * operands name; links count. Errors: EUSAGE. */
cdmpp_status cd_option_outputs_apart(const cd_command *c, const void *to, const cd_cli_args *said,
                                     cdmpp_err *err);
/* Row i of the table and of what every command has; NULL after the last. `common`: one of the
 * latter. */
const cd_option *cd_option_row(const cd_command *c, size_t i, bool *common);
/* The row that help shows as its i-th: those of a group stand together, in the order of the
 * table. */
size_t cd_option_shown(const cd_command *c, size_t i);
/* Title of the group of row i; NULL: none. */
const char *cd_option_group(const cd_command *c, size_t i);
static inline bool cd_option_is_file(const cd_option *o) {
    return o->kind == CD_OPTION_FILE || o->kind == CD_OPTION_OUTPUT || o->kind == CD_OPTION_FILES;
}
static inline bool cd_option_is_list(const cd_option *o) {
    return o->kind == CD_OPTION_FILES || o->kind == CD_OPTION_TEXTS;
}

/* What to print, 80 columns. --help: all where that is at most CD_OPTION_HELP_LINES lines, else two
 * lines of the synopsis, what the command does, three examples and the usual options. */
enum { CD_OPTION_HELP_LINES = 40 };
void cd_option_help(cd_buf *b, const cd_command *c);
/* --help=all: synopsis, description, verbs, all options by group, exit codes. */
void cd_option_help_all(cd_buf *b, const cd_command *c);
/* The synopsis alone. */
void cd_option_usage(cd_buf *b, const cd_command *c);
/* A man page in roff (option_complete.c). */
void cd_option_man(cd_buf *b, const cd_command *c);
/* Completion scripts (option_complete.c); they need nothing but the shell. */
void cd_option_bash(cd_buf *b, const cd_command *c);
void cd_option_zsh(cd_buf *b, const cd_command *c);

/* The exit codes of every command. */
typedef struct cd_cli_exit_row {
    int code;
    const char *brief, *help;
} cd_cli_exit_row;
const cd_cli_exit_row *cd_cli_exit_rows(size_t *n);

/* ^C and SIGTERM end a command in order: it finishes its line, writes what it has and exits with
 * 130. */

/* How long a command may take to end in order after the first signal; then it is ended, with what
 * it has written so far. */
enum { CD_SIGNALS_GRACE_MS = 1800 };
/* The n-th signal kills in place of the second; 0: none does. */
void cd_signals_kill_at(int n);
volatile sig_atomic_t *cd_signals_stop(void);

/* The frame of a command: what every main() does before and after its own work.
 *
 *   static cdmpp_status run(cd_command_run *r, void *options, cdmpp_err *err) { ... }
 *
 *   int main(int argc, char **argv) {
 *       options o = {.batch = -1};
 *       return cd_command_main(&table, argc, argv, &o, run);
 *   }
 *
 *   argv ─> options, -help, -version ─> signals ─> run() ─> standard output written? ─> error
 *     reported once ─> exit code
 *
 * | exit code             | when                                                        |
 * | 0                     | run() succeeded, or help was printed                        |
 * | r->exit_code, often 3 | run() succeeded and set it: some items could not be used    |
 * | 2                     | the command line is wrong                                   |
 * | cdmpp_exit_code(st)   | run() failed with st; 130 after a signal                    |
 * | ended by SIGPIPE      | nobody reads standard output any more                       |
 *
 * For commands only: it prints. */

typedef struct cd_command_run {
    const cd_command *command;
    cd_cli_args said; /* operands and common options as parsed */
    cd_log log;
    int argc; /* the command line as given */
    char **argv;
    volatile sig_atomic_t *stop; /* number of the signal that asks the command to end, 0: none */
    int exit_code;               /* of a success; run() may set 3 */
} cd_command_run;

/* The command's own work. `options` is the struct that was filled from the table. An error is
 * reported by the caller, unless run() has reported it and cleared *err (cd_command_reported). */
typedef cdmpp_status cd_command_fn(cd_command_run *r, void *options, cdmpp_err *err);

/* All of main(). `options` holds the defaults. Returns the exit code. */
int cd_command_main(const cd_command *c, int argc, char **argv, void *options, cd_command_fn *run);
/* For run(): messages of level DEBUG too, unless --quiet was given. */
void cd_command_verbose(cd_command_run *r, bool verbose);
/* For run(): the error is on the screen already, for instance as a list of mistakes. Returns st. */
cdmpp_status cd_command_reported(cdmpp_status st, cdmpp_err *err);

/* ---- parts, for commands with another frame ---- */
/* False: nothing is left to do, *code is the exit code (0 or 1: help, 2: usage) and there is
 * nothing to end. */
bool cd_command_begin(cd_command_run *f, const cd_command *c, int argc, char **argv, void *to,
                      int *code);
/* Frees what cd_command_begin made. */
void cd_command_end(cd_command_run *f);
/* Logs the error where `st` is one, and ends the command; the exit code: 3 where all went well but
 * some items were left out. */
int cd_command_finish(cd_command_run *f, cdmpp_status st, const cdmpp_err *err, bool left_out);
/* Prints "cdmpp-train: <message>" and where help is; returns the exit code. */
int cd_command_usage(cd_command_run *f, const cdmpp_err *err);

/* ---- output ---- */
/* {"schema":..,"command":..,"result":<result>,"warnings":["..."]} and a line end; `result` is JSON,
 * and freed. The warnings are those that the log kept; every command with --json keeps them. log
 * NULL: none. */
void cd_command_json(cd_buf *b, const char *schema, const char *command, const cd_log *log,
                     CD_TAKE cd_buf *result);
/* A text as a JSON string; `text` is freed. */
void cd_command_quote(cd_buf *b, CD_TAKE cd_buf *text);
/* All of the text to standard output; `b` is freed. Errors: EIO, ENOMEM. */
cdmpp_status cd_command_print(CD_TAKE cd_buf *b, cdmpp_err *err);
/* To standard output: the text, or with json the JSON object in it inside the envelope of
 * cd_command_json. Frees b. Errors: EIO, ENOMEM. */
cdmpp_status cd_command_result(bool json, const char *schema, const char *command,
                               const cd_log *log, CD_TAKE cd_buf *b, cdmpp_err *err);

/* option_number -- options whose value is a real number: kept as text in the table of options, read
 * by the command's check. */

/* A number in lo .. hi; text NULL (the option was not given): *out stays as it is. Errors: EUSAGE,
 * names the option. */
cdmpp_status cd_option_number(const char *option, const char *text, double lo, double hi,
                              double *out, cdmpp_err *err);

/* How far a long command is.
 *
 *   [############..................]  41 %  1234/3000 files  88.1 files/s  ETA 0:20
 *
 * On a terminal (not a dumb one) one line is redrawn. Elsewhere nothing, but with JSON
 * logging and when verbose a line every 10 s. Nothing below the INFO level. Any thread may step. */

typedef struct cd_progress {
    cd_log *log;
    const char *what, *unit; /* borrowed */
    uint64_t done, total;    /* total 0: unknown, no bar and no ETA */
    double begin_s, shown_s; /* monotonic clock */
    double every_s;          /* between two lines; infinite: none */
    bool tty;
    pthread_mutex_t lock;
} cd_progress;

/* Starts the clock. `what` and `unit` are borrowed, total 0: unknown. */
void cd_progress_begin(cd_progress *p, cd_log *log, const char *what, const char *unit,
                       uint64_t total);
/* `done` is the count so far, not an increment; a smaller one than before is ignored. */
void cd_progress_step(cd_progress *p, uint64_t done);
/* Removes the bar and reports count, time and rate. */
void cd_progress_end(cd_progress *p);
/* Removes the bar without a word, in place of cd_progress_end. */
void cd_progress_clear(cd_progress *p);
/* A time as 0:20 or 1:02:03; "?" for NaN. */
void cd_progress_put_time(cd_buf *b, double s);
/* The line itself, for `done` after `elapsed_s`; exposed to be tested. */
void cd_progress_text(const cd_progress *p, double elapsed_s, char *buf, size_t n);
#endif
