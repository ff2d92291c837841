/* The options of a command as one table: parsed, shown, documented, completed.
 *
 *   static const cd_option row[] = {
 *       {"jobs", 'j', "N", CD_OPTION_INT, offsetof(options, jobs), "1..1024", 0, "Threads ..."}, ...
 *
 *   argv  -> row by its long or short name -> checked -> into the struct at its offset
 *   table -> --help, --help=man, --help=bash, --help=zsh
 *
 * (1) "--name=value", "--name value", "-n value", "-nvalue"; flags cluster: "-qj4".
 * (2) No abbreviations: a new option never changes what an old command line means.
 *     An unknown name is an error that names the one that was probably meant.
 * (3) "--" ends the options, "-" is an operand, options and operands mix.
 * (4) Of an option given twice the last one counts, lists take all.
 * (5) Rows that every command has are added here: --json, --quiet, --log-format,
 *     --help, --usage, --version; their values are in cd_cli_args.
 * Texts are borrowed from argv. No state, any thread. */
#ifndef CD_OPTION_H
#define CD_OPTION_H
#include "base/text/text.h"

typedef enum cd_option_kind {
    CD_OPTION_FLAG,   /* bool                                                  */
    CD_OPTION_INT,    /* int; `values`: "lo..hi"                               */
    CD_OPTION_WORD,   /* int: position in `values`, "text|json"                */
    CD_OPTION_TEXT,   /* const char *                                          */
    CD_OPTION_FILE,   /* const char *; `values`: patterns "*.h5|*.json", NULL: any file */
    CD_OPTION_FOLDER, /* const char *                                          */
    CD_OPTION_TEXTS,  /* cd_texts, may be given many times                     */
    CD_OPTION_FILES   /* the same, of files                                    */
} cd_option_kind;

typedef struct cd_option {
    const char *name;    /* without "--" */
    char letter;         /* of the short form; 0: none */
    const char *arg;     /* "FILE"; "[FORM]": may be left out; NULL: a flag */
    cd_option_kind kind;
    size_t offset;       /* into the struct */
    const char *values;  /* as above */
    int group;           /* index of its title in cd_command.group */
    const char *help;    /* a sentence without its full stop; NULL: an older name, accepted and not shown */
} cd_option;

/* Parsed values of the options that every command has, and the operands. */
typedef struct cd_cli_args {
    cd_texts operand;
    bool help_asked, usage, version, json, quiet;
    int help, log_format; /* cd_cli_help_form; 1: JSON */
    cd_arena arena;       /* of the lists */
} cd_cli_args;

typedef enum cd_cli_help_form { CD_CLI_HELP_TEXT, CD_CLI_HELP_MAN, CD_CLI_HELP_BASH, CD_CLI_HELP_ZSH } cd_cli_help_form;

typedef struct cd_command {
    const char *name;               /* "cdmpp-train"; of a verb "cdmpp-mpi train" */
    const char *brief;              /* what it does, lower case, no full stop */
    const char *const *use;         /* lines of the synopsis without the name; NULL ends */
    const char *about;              /* paragraphs, parted by "\n\n" */
    const cd_option *row;
    size_t n_row;
    const char *const *group;       /* titles by cd_option.group; NULL: none */
    const char *operand;            /* patterns of files that operands are, "": any; NULL: there are none */
    const char *const *example;     /* pairs: what, command line; NULL ends */
    const char *const *file;        /* pairs: path, what; NULL ends */
    const char *const *see;         /* "cdmpp-train(1)"; NULL ends */
    const struct cd_command *const *verb; /* its first operand chooses one of these; NULL ends */
    /* Rules between options, after all were read; NULL: none. Errors: EUSAGE. */
    cdmpp_status (*check)(void *to, const cd_cli_args *said, cdmpp_err *err);
} cd_command;

/* Fill `to` and `said` (zeroed by the caller) from argv[1..]. With --help, --usage or --version
 * nothing is checked any more. Errors: EUSAGE, ENOMEM. Free `said` after an error too. */
cdmpp_status cd_option_read(const cd_command *c, int argc, char **argv, void *to, cd_cli_args *said, cdmpp_err *err);
void cd_cli_args_free(cd_cli_args *said);
/* Row i of the table and of what every command has; NULL after the last. `common`: one of the latter. */
const cd_option *cd_option_row(const cd_command *c, size_t i, bool *common);
/* The row that help shows as its i-th: those of a group stand together, in the order of the table. */
size_t cd_option_shown(const cd_command *c, size_t i);
/* Title of the group of row i; NULL: none. */
const char *cd_option_group(const cd_command *c, size_t i);
static inline bool cd_option_is_file(const cd_option *o) { return o->kind == CD_OPTION_FILE || o->kind == CD_OPTION_FILES; }
static inline bool cd_option_is_list(const cd_option *o) { return o->kind == CD_OPTION_FILES || o->kind == CD_OPTION_TEXTS; }

/* What to print. --help, 80 columns: */
void cd_option_help(cd_buf *b, const cd_command *c);
/* The synopsis alone. */
void cd_option_usage(cd_buf *b, const cd_command *c);
/* A man page in roff (option_man.c). */
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
#endif
