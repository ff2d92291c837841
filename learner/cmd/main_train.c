/* cdmpp-train: data set files to a model file. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "learner/cmd/main_train.h"
#include "learner/hpo/hpo.h"

/* cdmpp-train --choose and --choose-tasks: what to measure on a new device
 * (learner/train/train.h). */

/* What is chosen goes to the file, and is told on standard output; without a file it goes there
 * itself. */
static cdmpp_status put(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                        cd_main_options *o, cdmpp_err *err) {
    cd_buf lines = {0}, told = {0}, out = {0};
    cdmpp_status st = o->out || !o->json ? cd_choose_put(c, d, ch, &lines, err) : CDMPP_OK;
    if (!st && o->out) st = cd_file_write(o->out, lines.p ? lines.p : "", lines.n, err);
    (o->json ? cd_choose_json : cd_choose_text)(&told, d, ch);
    if (!st && told.oom) st = CD_FAIL(err, ENOMEM, "%zu programs", ch->n);
    if (st) cd_buf_free(&told);
    else if (o->json) cd_command_json(&out, "cdmpp.choice", o->name, o->log, &told);
    else if (!o->out) cd_log_lines(o->log, CD_LOG_INFO, told.p);
    if (!st && !o->json) cd_buf_puts(&out, o->out ? told.p : lines.p ? lines.p : "");
    cd_buf_free(&told);
    cd_buf_free(&lines);
    if (!st) return cd_command_print(&out, err);
    cd_buf_free(&out);
    return st;
}

static cdmpp_status with_data(const cd_config *c, cd_main_options *o, cd_threads *pool,
                              cdmpp_err *err) {
    const cd_member_plan rows = {0}; /* features alone are read */
    const bool tasks = o->choose_tasks > 0;
    const cd_choice_options how = {(size_t)(tasks ? o->choose_tasks : o->choose), tasks, o->budget,
                                   pool};
    cd_dataset *d = NULL;
    cd_choice ch = {0};
    cdmpp_status st = cd_learner_load(c, &rows, &d, err);
    if (!st) st = cd_choose(c, d, &how, &ch, err);
    if (!st && !ch.n)
        st = CD_FAIL(err, ERANGE, "no program costs less than the budget of %d s", o->budget);
    if (!st && ch.n < how.k)
        cd_log_put(
            o->log, CD_LOG_WARNING, "%zu of %zu: %s", ch.n, how.k,
            o->budget ? "the budget is spent, or all others have the features of one that is chosen"
                      : "there are no more");
    if (!st) st = put(c, d, &ch, o, err);
    cd_choose_free(&ch);
    cd_dataset_free(d);
    return st;
}

/* --choose, --choose-tasks: what to measure on a new device. */
static cdmpp_status main_choose(const cd_config *c, cd_main_options *o, cdmpp_err *err) {
    cd_threads *pool = NULL;
    if (c->data_kind)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected programs: of operators nothing is chosen"),
            "data.kind");
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    if (!st) st = with_data(c, o, pool, err);
    cd_threads_free(pool);
    return st;
}

/* A cd_progress_event_fn: shows the event on a cd_train_progress, which may be NULL; false once a
 * signal asked to stop.
 *
 * cdmpp-train and cdmpp-mpi train: reads the configuration, calls learner/train, prints what comes
 * back. */
static bool main_tick(void *progress, const cd_progress_event *t) {
    if (progress) cd_train_progress_step(progress, t);
    return !*cd_signals_stop();
}

/* Print the list of a configuration's errors, and clear *err; `err` alone when it is about no
 * key. */
static cdmpp_status main_config_failed(const cd_config *c, cd_main_options *o, cdmpp_status st,
                                       cdmpp_err *err) {
    if (c->diag.n) cd_log_lines(o->log, CD_LOG_ERROR, c->diag.text.p);
    else cd_log_err(o->log, CD_LOG_ERROR, err);
    if (c->diag.n > 1)
        cd_log_put(o->log, CD_LOG_ERROR, "%zu errors in the configuration", c->diag.n);
    return cd_command_reported(st, err);
}

static cdmpp_status read_config(const char *path, cd_main_options *o, cd_config *c,
                                cdmpp_err *err) {
    cdmpp_status st = cd_config_read(c, path, o->set.v, o->set.n, err);
    if (o->report) c->output_report = o->report;
    if (!st && !o->print) st = cd_config_check(c, path, err);
    for (const char *p = !st && c->notes.n ? c->notes.p : ""; *p;
         p += strcspn(p, "\n"), p += *p == '\n')
        cd_log_put(o->log, CD_LOG_WARNING, "%.*s", (int)strcspn(p, "\n"), p);
    return st;
}

/* What was written is what a predictor will read: report from the file's bytes. */
static cdmpp_status reload(cd_learner_result *l, cdmpp_err *err) {
    cd_model *m;
    CD_TRY(cd_model_from_bytes(l->file.p, l->file.n, &m, err));
    cd_model_free(l->model);
    l->model = m;
    return CDMPP_OK;
}

/* A folder that is missing is reported now, not after hours of training. */
static cdmpp_status can_write(const char *path, cdmpp_err *err) {
    struct stat s;
    char *temp;
    /* a device: see when it is written */
    if (!path[0] || (stat(path, &s) == 0 && !S_ISREG(s.st_mode))) return CDMPP_OK;
    CD_TRY(cd_file_temp(path, &temp, err));
    cd_file_discard(temp);
    return CDMPP_OK;
}

/* Whether the model that is to be written is none of the files of the data set. Errors: EUSAGE. */
static cdmpp_status main_out_apart(const cd_config *c, const char *path, cdmpp_err *err) {
    for (size_t k = 0; k < c->data_files.n; k++)
        if (path[0] && cd_file_same(c->data_files.v[k], path))
            return CD_FAIL(err, EUSAGE, "the model would overwrite its data set, %s", path);
    return CDMPP_OK;
}

static cdmpp_status write_out(const cd_config *c, const cd_main_options *o, cd_learner_result *l,
                              const char *path, cdmpp_err *err) {
    CD_TRY(reload(l, err));
    CD_TRY(cd_file_write(path, l->file.p, l->file.n, err));
    CD_TRY(cd_train_artifacts_write(l->keep, c->output_report, o->command ? o->command : "", err));
    cd_buf b = {0};
    if (o->json) cd_train_print_json(&b, l, path);
    else cd_train_print_text(&b, l, path, c->output_report, c->predict_level, o->quiet);
    return cd_command_print(&b, err);
}

/* Train, write the model and what the options ask for, print the figures. */
static cdmpp_status main_fit(const cd_config *c, cd_main_options *o, cdmpp_err *err) {
    const char *path = o->out ? o->out : c->output_model;
    cd_threads *pool = NULL;
    cd_learner_result l = {0};
    cd_model *start = NULL;
    cd_train_progress progress;
    CD_TRY(main_out_apart(c, path, err));
    CD_TRY(can_write(path, err));
    CD_TRY(can_write(c->output_report, err));
    CD_TRY(cd_train_artifacts_check(c->output_report, err));
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st && o->finetune) st = cd_model_load(o->finetune, &start, err);
    const cd_learner_options how = {.pool = pool,
                                    .tick = main_tick,
                                    .ctx = &progress,
                                    .start = start,
                                    .folder = o->folder,
                                    .log = o->log,
                                    .ranks = o->ranks};
    if (!st) st = cd_learner_run(c, NULL, &how, &l, err);
    cd_model_free(start);
    cd_train_progress_end(&progress);
    if (!st && l.model) st = write_out(c, o, &l, path, err);
    cd_learner_result_free(&l);
    cd_threads_free(pool);
    return st;
}

/* --doc-config and --print-config; `c` as far as it could be read. */
static cdmpp_status print_config(const cd_config *c, const cd_main_options *o, cdmpp_err *err) {
    cd_buf b = {0}, out = {0};
    size_t n;
    const cd_conf_key *key = o->space ? cd_hpo_space_keys(&n) : cd_config_keys(&n);
    if (o->doc) (o->json ? cd_conf_doc_json : cd_conf_doc)(&b, key, n);
    else (o->json ? cd_config_json : cd_config_print)(&b, c);
    if (!o->json) return cd_command_print(&b, err);
    cd_command_json(&out, o->doc ? "cdmpp.config_keys" : "cdmpp.config", o->name, o->log, &b);
    return cd_command_print(&out, err);
}

static cdmpp_status main_try(const cd_config *c, cd_main_options *o, cdmpp_err *err);

static cdmpp_status main_operators(const cd_config *c, const char *config, cd_main_options *o,
                                   cdmpp_err *err);

static cdmpp_status with_config(const char *path, cd_main_options *o, cdmpp_err *err) {
    cd_config c;
    cdmpp_status st = cd_config_init(&c, err);
    if (!st && !o->doc) st = read_config(path, o, &c, err);
    if (st) st = main_config_failed(&c, o, st, err);
    else if (o->doc || o->print) st = print_config(&c, o, err);
    else if (o->trial) st = main_try(&c, o, err);
    else if (o->choose || o->choose_tasks) st = main_choose(&c, o, err);
    else st = c.data_kind ? main_operators(&c, path, o, err) : main_fit(&c, o, err);
    cd_config_free(&c);
    return st;
}

/* The words of the call as a shell would read them back. */
static char *shell_line(const char *name, int argc, char **argv) {
    cd_buf b = {0};
    cd_buf_puts(&b, name);
    for (int i = 1; i < argc; i++) {
        cd_buf_puts(&b, " ");
        cd_escape_shell(&b, cd_str_of(argv[i]));
    }
    if (b.oom) cd_buf_free(&b);
    return b.p;
}

/* The configuration that is here, else the installed one of that name. */
static cdmpp_status find_config(cd_arena *a, cd_main_options *o, const char **path,
                                cdmpp_err *err) {
    const char *asked = *path;
    if (!asked) return CDMPP_OK;
    *path = cd_data_path_or(a, "configs", asked);
    if (!*path) return CD_FAIL(err, ENOMEM, "path");
    if (*path != asked) cd_log_put(o->log, CD_LOG_INFO, "reads %s", *path);
    return CDMPP_OK;
}

static cdmpp_status main_search(const char *config, cd_main_options *o, cdmpp_err *err);

/* No signal kills: a training ends at the next step and keeps its checkpoint. */
static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    cd_main_options *o = to;
    const char *path = r->said.operand.n ? r->said.operand.v[0] : NULL;
    o->log = &r->log;
    o->json = r->said.json;
    o->quiet = r->said.quiet;
    o->name = r->command->name;
    o->command = shell_line(o->name, r->argc, r->argv);
    cd_command_verbose(r, o->verbose);
    cd_signals_kill_at(0);
    signal(SIGPIPE, SIG_DFL);
    cdmpp_status st = find_config(&r->said.arena, o, &path, err);
    if (!st) st = find_config(&r->said.arena, o, &o->space, err);
    if (!st) st = o->space && !o->doc ? main_search(path, o, err) : with_config(path, o, err);
    cd_mem_free(o->command);
    r->exit_code = o->skipped ? 3 : 0;
    return st;
}

int cd_main_train(int argc, char **argv, const cd_command *command, const cd_process_group *ranks) {
    cd_main_options o = {.config_of = -1, .ranks = ranks, NULL};
    return cd_command_main(command, argc, argv, &o, run);
}

/* cdmpp-train with data.kind: operators or llm_operators: a model of operators from tables of
 * measured times. */

enum { SHOWN = 20, LLM = 2 }; /* bad lines that are printed one by one; data.kind llm_operators */

/* One run, of either kind: what it reads, and what it makes of it. */
typedef struct {
    const cd_config *c;
    cd_main_options *o;
    cd_device_table *devices;
    size_t told;
    cd_library_op_data data;
    cd_library_op_train_result library;
    cd_llm_op_table table;
    cd_llm_op_train_result llm;
} running;

/* What the kinds of operators differ in. */
typedef struct {
    cdmpp_status (*add)(running *r, const char *path, cdmpp_err *err);
    cdmpp_status (*read)(running *r, cdmpp_err *err);
    cdmpp_status (*train)(running *r, cd_threads *pool, cd_train_progress *p, const cd_buf **file,
                          cdmpp_err *err);
    cdmpp_status (*print)(running *r, const char *path, cd_buf *b, cdmpp_err *err);
} of_kind;

static void on_bad(void *ctx, const cdmpp_err *err) {
    running *r = ctx;
    char buf[600];
    if (r->told++ < SHOWN)
        cd_log_put(r->o->log, CD_LOG_WARNING, "skipped: %s",
                   cdmpp_err_format(err, buf, sizeof buf));
}

/* ---- library operators ---- */
static cdmpp_status add_library(running *r, const char *path, cdmpp_err *err) {
    const cd_library_op_filter f = {r->c->data_devices, r->c->operators_exclude};
    return cd_library_op_data_add(&r->data, path, r->devices, &f, on_bad, r, err);
}

/* The error is about no rows; these are the reasons why. */
static cdmpp_status read_library(running *r, cdmpp_err *err) {
    cd_buf b = {0};
    (void)err;
    r->o->skipped = r->data.drop[CD_LIBRARY_OP_DROP_BAD] > 0;
    if (!r->data.n) cd_train_print_left_out(&b, r->c, &r->data, 0);
    for (char *line = b.p, *end; line && (end = strchr(line, '\n')); line = end + 1)
        cd_log_put(r->o->log, CD_LOG_WARNING, "%.*s", (int)(end - line), line);
    cd_buf_free(&b);
    return CDMPP_OK;
}

static cdmpp_status train_library(running *r, cd_threads *pool, cd_train_progress *p,
                                  const cd_buf **file, cdmpp_err *err) {
    *file = &r->library.file;
    return cd_library_op_train(r->c, &r->data, pool, main_tick, p, &r->library, err);
}

static cdmpp_status print_library(running *r, const char *path, cd_buf *b, cdmpp_err *err) {
    if (!r->o->json)
        return cd_train_print_operators_text(b, r->c, &r->data, &r->library, path, err);
    cd_train_print_operators_json(b, r->c, &r->data, &r->library, path);
    return CDMPP_OK;
}

/* ---- operators of language models ---- */
static cdmpp_status add_llm(running *r, const char *path, cdmpp_err *err) {
    return cd_llm_op_table_add(&r->table, path, r->devices, &r->c->data_devices, on_bad, r, err);
}

static cdmpp_status read_llm(running *r, cdmpp_err *err) {
    r->o->skipped = r->table.drop[CD_LLM_OP_DROP_BAD] + r->table.drop[CD_LLM_OP_DROP_TIME] > 0;
    CD_TRY(cd_llm_op_table_index(&r->table, err));
    cd_llm_op_table_say(&r->table, r->o->log);
    return CDMPP_OK;
}

static cdmpp_status train_llm(running *r, cd_threads *pool, cd_train_progress *p,
                              const cd_buf **file, cdmpp_err *err) {
    const unsigned sets =
        1u << CD_LLM_OP_SET_UNSEEN | 1u << CD_LLM_OP_SET_SEEN | 1u << CD_LLM_OP_SET_NEAR;
    *file = &r->llm.file;
    return cd_llm_op_train(r->c, &r->table, sets, pool, main_tick, p, &r->llm, err);
}

static cdmpp_status print_llm(running *r, const char *path, cd_buf *b, cdmpp_err *err) {
    (void)err;
    if (r->o->json) cd_train_print_llm_json(b, &r->table, &r->llm, path);
    else cd_train_print_llm_text(b, r->c, &r->table, &r->llm, path);
    return CDMPP_OK;
}

/* ---- all ---- */
static cdmpp_status load(running *r, const of_kind *k, const char *config, cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cdmpp_status st =
        cd_device_table_open(&a, r->c->device_file, config, &diag, NULL, &r->devices, err);
    if (st && diag.n) cd_log_lines(r->o->log, CD_LOG_ERROR, diag.text.p);
    if (!st) cd_device_table_say(r->devices, r->o->log);
    for (size_t i = 0; !st && i < r->c->data_files.n; i++)
        st = k->add(r, r->c->data_files.v[i], err);
    if (!st) st = k->read(r, err);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* data.kind: operators or llm_operators; `config` is the path of the configuration. Sets o->skipped
 * when bad lines were left out. */
static cdmpp_status main_operators(const cd_config *c, const char *config, cd_main_options *o,
                                   cdmpp_err *err) {
    static const of_kind library = {add_library, read_library, train_library, print_library};
    static const of_kind llm = {add_llm, read_llm, train_llm, print_llm};
    const of_kind *k = c->data_kind == LLM ? &llm : &library;
    const char *path = o->out ? o->out : c->output_model;
    running r = {.c = c, .o = o};
    cd_threads *pool = NULL;
    const cd_buf *file = NULL;
    cd_train_progress progress;
    cd_buf b = {0};
    cdmpp_status st = main_out_apart(c, path, err);
    if (!st) st = load(&r, k, config, err);
    if (!st) st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st) st = k->train(&r, pool, &progress, &file, err);
    cd_train_progress_end(&progress);
    if (!st) st = cd_file_write(path, file->p, file->n, err);
    if (!st) st = k->print(&r, path, &b, err);
    if (!st) st = cd_command_print(&b, err);
    cd_buf_free(&b);
    cd_library_op_train_result_free(&r.library);
    cd_llm_op_train_result_free(&r.llm);
    cd_threads_free(pool);
    cd_library_op_data_free(&r.data);
    cd_llm_op_table_free(&r.table);
    cd_device_table_free(r.devices);
    return st;
}

/* The options of cdmpp-train and of cdmpp-mpi train, and their texts. What a choice and a search
 * need is last in the table, because cdmpp-mpi has neither. */

#define AT(member) offsetof(cd_main_options, member)
enum { MAIN, OTHER, CHOOSE, SEARCH };
static const char *const group[] = {"Training", "Configuration", "A new device", "Search"};

static const cd_option table[] = {
    {"out", 'o', "FILE", CD_OPTION_FILE, AT(out), "*.cdmpp", MAIN,
     "The model file (default: output.model of the configuration)"},
    {"finetune", 0, "MODEL", CD_OPTION_FILE, AT(finetune), "*.cdmpp", MAIN,
     "Networks go on from those of that model file; trees are trained anew"},
    {"checkpoint", 0, "DIR", CD_OPTION_FOLDER, AT(folder), NULL, MAIN,
     "Keep trained members and networks under way there; the same command goes on from them after "
     "a kill, to the same bytes"},
    {"report", 0, "FILE", CD_OPTION_OUTPUT, AT(report), "*.html", MAIN,
     "Write a page (.html) about the training, with .json and .csv beside it (default: "
     "output.report of the configuration)"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", MAIN,
     "Threads (default: one per CPU); the result is the same"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, AT(verbose), NULL, MAIN,
     "A line for every round on standard error"},
    {"set", 0, "KEY=VALUE", CD_OPTION_TEXTS, AT(set), NULL, OTHER, "Override a key"},
    {"print-config", 0, NULL, CD_OPTION_FLAG, AT(print), NULL, OTHER,
     "Print the merged configuration as YAML and stop"},
    {"doc-config", 0, NULL, CD_OPTION_FLAG, AT(doc), NULL, OTHER,
     "Print all keys (with --autotune: those of a search) as a Markdown table and stop"},
    {"choose", 0, "K", CD_OPTION_INT, AT(choose), "1..4096", CHOOSE,
     "Train nothing: write K records of the training part to --out (default: standard output), "
     "which stand for all by their features, to be measured there"},
    {"choose-tasks", 0, "K", CD_OPTION_INT, AT(choose_tasks), "1..100000", CHOOSE,
     "Likewise the workload keys of K tasks"},
    {"budget", 0, "SECONDS", CD_OPTION_INT, AT(budget), "1..100000000", CHOOSE,
     "Of --choose: as many of the K as take so long to measure, cheap ones first; estimated by "
     "their latency in the data set, without compiling"},
    {"autotune", 0, "SPACE", CD_OPTION_FILE, AT(space), "*.yaml", SEARCH,
     "Search that space over the configuration, write the best one to --out (default: best.yaml), "
     "then train it; docs/reference/autotune.md"},
    {"journal", 0, "FILE", CD_OPTION_FILE, AT(journal), "*.jsonl", SEARCH,
     "Of the search, so that it can go on, and be made longer later (default: OUT.journal.jsonl, "
     "removed when all is done if this run made it)"},
    {"config-of", 0, "TRIAL", CD_OPTION_INT, AT(config_of), "0..99999", SEARCH,
     "Of --autotune: train nothing, write the configuration of that trial, as the search numbers "
     "them, with the full budget to --out"},
    {"trial", 0, NULL, CD_OPTION_FLAG, AT(trial), NULL, SEARCH,
     "Train, print the validation figures, write nothing; the test part is not read"},
};
enum { N_ROW = sizeof table / sizeof *table, N_ALONE = 7 };

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const cd_main_options *o = to;
    const size_t n = said->operand.n;
    if (o->space && o->trial)
        return CD_FAIL(err, EUSAGE, "expected --autotune or --trial, not both");
    if ((o->space || o->trial) && o->finetune)
        return CD_FAIL(err, EUSAGE, "--finetune goes with neither --autotune nor --trial");
    if (o->config_of >= 0 && !o->space)
        return CD_FAIL(err, EUSAGE, "--config-of goes with --autotune");
    if (o->choose && o->choose_tasks)
        return CD_FAIL(err, EUSAGE, "expected --choose or --choose-tasks, not both");
    if (o->budget && !o->choose) return CD_FAIL(err, EUSAGE, "--budget goes with --choose");
    if ((o->choose || o->choose_tasks) &&
        (o->space || o->trial || o->finetune || o->folder || o->report))
        return CD_FAIL(err, EUSAGE,
                       "--choose and --choose-tasks train nothing: they go with none of "
                       "--autotune, --trial, --finetune, --checkpoint, --report");
    if ((o->space && !n) || o->doc) return CDMPP_OK;
    if (n != 1)
        return CD_FAIL(err, EUSAGE,
                       n ? "expected one configuration, found %zu"
                         : "expected a configuration, found none",
                       n);
    return CDMPP_OK;
}

static const char about[] = "Reads a configuration (YAML), trains what it says on the data sets "
                            "that it names, and writes a model file with the "
                            "figures of its validation and test parts inside. The model does not "
                            "depend on the number of threads.\n\n"
                            "A configuration that is not there is looked for among those that are "
                            "installed: \"v100.yaml\" or "
                            "\"configs/v100.yaml\" work from any folder. All keys, their defaults "
                            "and ranges: --doc-config and docs/reference/config.md.";
static const char *const use[] = {"[OPTION...] CONFIG.yaml",
                                  "--autotune SPACE.yaml [OPTION...] [CONFIG.yaml]", NULL};
static const char *const mpi_use[] = {"[OPTION...] CONFIG.yaml", NULL};
static const char *const example[] = {
    "Train on own data",
    "cdmpp-train zen5.yaml --set data.files=epyc.h5 --out epyc.cdmpp",
    "What would be trained",
    "cdmpp-train v100.yaml --set split.kind=network --print-config",
    "Go on after a kill",
    "cdmpp-train v100.yaml --checkpoint v100.ck --out v100.cdmpp",
    "What to measure on a new device",
    "cdmpp-train zen5.yaml --choose 100 --out measure.json",
    "Search for a configuration",
    "cdmpp-train --autotune space-gbt.yaml v100.yaml --out best.yaml -j 8",
    NULL};
static const char *const file[] = {
    "PREFIX/share/cdmpp/configs/",
    "Configurations, and devices.yaml: what is known about devices. Read when there is no "
    "devices.yaml beside the configuration and no configs/devices.yaml here.",
    "PREFIX/share/doc/cdmpp/", "The documents that the texts of options name.", NULL};
static const char *const see[] = {"cdmpp-extract(1)", "cdmpp-predict(1)", "cdmpp-mpi(1)", NULL};

static const cd_option_usual usual[] = {
    {"out", "Model file to write"},
    {"set", "Override a key (repeatable)"},
    {"jobs", "Threads (default: one per CPU)"},
    {"report", "Write a page about the training"},
    {"checkpoint", "Go on there after an interruption"},
    {"finetune", "Start from the networks of that model"},
    {"choose", "Choose K programs to measure on a new device"},
    {"autotune", "Search the space of configurations"},
    {"print-config", "Print the merged configuration"},
    {"doc-config", "Explain all keys"},
    {"verbose", "A line for every round"},
    {NULL, NULL},
};

const cd_command cd_main_train_options = {
    "cdmpp-train", "train a latency model from a configuration",
    use,           about,
    table,         N_ROW,
    group,         "*.yaml|*.yml",
    example,       file,
    see,           NULL,
    check,         usual};
const cd_command cd_main_train_options_mpi = {
    "cdmpp-mpi train",
    "train a model: members, or slices of a network's batches, dealt out",
    mpi_use,
    "As cdmpp-train, to the same bytes for any number of ranks; -j are the threads of each rank. "
    "Members are dealt out, and "
    "with fit.slices of at least the number of ranks also the slices of a network's batches. Each "
    "rank loads the whole data set.",
    table,
    N_ROW - N_ALONE,
    group,
    "*.yaml|*.yml",
    NULL,
    NULL,
    see,
    NULL,
    check,
    NULL};

/* cdmpp-train --autotune and --trial (docs/reference/autotune.md): calls learner/hpo, prints each
 * result as it comes. */

static void print(cd_buf *b) {
    if (b->p) fputs(b->p, stdout);
    fflush(stdout);
    cd_buf_free(b);
}

/* ---- one trial of somebody else's search ---- */
/* --trial: the validation figures alone. */
static cdmpp_status main_try(const cd_config *c, cd_main_options *o, cdmpp_err *err) {
    cd_threads *pool = NULL;
    cd_train_progress progress;
    cd_metric valid;
    cd_buf b = {0}, notes = {0};
    if (c->data_kind)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected programs, a trial trains on nothing else"),
            "data.kind");
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st) st = cd_learner_try(c, NULL, pool, main_tick, &progress, &notes, &valid, err);
    cd_train_progress_end(&progress);
    if (!st && o->json) {
        cd_buf_puts(&b, "{\"schema\":\"cdmpp.trial\",\"command\":\"cdmpp-train\",\"notes\":");
        cd_train_print_notes(&b, notes.p);
        cd_buf_puts(&b, ",\"validation\":");
        cd_metric_json(&b, &valid);
        cd_buf_puts(&b, "}\n");
    } else if (!st) {
        if (notes.p) cd_buf_puts(&b, notes.p);
        cd_metric_text(&b, cd_split_part_name(CD_SPLIT_PART_VALID),
                       cd_split_name((cd_split_kind)c->split_kind), &valid);
    }
    print(&b);
    cd_buf_free(&notes);
    cd_threads_free(pool);
    return st;
}

/* ---- our own search ---- */
static void on_trial(void *ctx, const cd_hpo_event *e) {
    cd_main_options *o = ctx;
    cd_buf b = {0};
    if (o->json) {
        cd_hpo_event_json(&b, e);
        print(&b);
    }
    if (e->state == CD_HPO_RUNNING) return;
    cd_hpo_event_text(&b, e);
    if (!b.oom) cd_log_put(o->log, CD_LOG_INFO, "%s", b.p);
    cd_buf_free(&b);
}

/* Standard output is JSON with --json and results without. */
static void on_note(void *ctx, const char *lines) {
    cd_main_options *o = ctx;
    cd_buf b = {0};
    cd_log_lines(o->log, CD_LOG_INFO, lines);
    if (!o->json) return;
    cd_buf_puts(&b, "{\"notes\":");
    cd_train_print_notes(&b, lines);
    cd_buf_puts(&b, "}\n");
    print(&b);
}

static bool silent_step(void *ctx, const cd_progress_event *t) {
    (void)ctx;
    return main_tick(NULL, t);
}

/* The search's keys, then those of the base; as JSON both in one object. */
static void print_space(const cd_hpo_run_state *s, const cd_main_options *o) {
    cd_buf b = {0}, text = {0}, config = {0};
    if (!o->json) {
        cd_hpo_space_print(&b, &s->space);
        cd_config_print(&b, &s->base);
        print(&b);
        return;
    }
    cd_hpo_space_print(&text, &s->space);
    cd_buf_puts(&config, "{\"search\":");
    cd_command_quote(&config, &text);
    cd_buf_puts(&config, ",\"base\":");
    cd_config_json(&config, &s->base);
    cd_buf_puts(&config, "}");
    cd_command_json(&b, "cdmpp.space", o->name, o->log, &config);
    print(&b);
}

static cdmpp_status search(const cd_hpo_run *cmd, cd_main_options *o, cd_hpo_run_state *s,
                           cdmpp_err *err) {
    cdmpp_status st = cd_hpo_run_read(cmd, !o->print && o->config_of < 0, s, err);
    if (st && s->space.diag.n) {
        cd_log_lines(o->log, CD_LOG_ERROR, s->space.diag.text.p);
        return cd_command_reported(st, err);
    }
    if (st) return main_config_failed(&s->base, o, st, err);
    if (o->print) return print_space(s, o), CDMPP_OK;
    if (o->config_of >= 0) return cd_hpo_run_config(cmd, s, (size_t)o->config_of, err);
    st = cd_hpo_run_search(cmd, s, err);
    if (s->found.torn)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%s: the last line was cut short, %zu bytes: that training was repeated",
                   s->journal, s->found.torn);
    if (!st) {
        cd_buf b = {0};
        (o->json ? cd_hpo_run_json : cd_hpo_run_text)(&b, s, cmd->out);
        print(&b);
    }
    o->out = NULL; /* the model goes where the configuration says */
    if (!st && o->report) s->best.output_report = o->report;
    if (!st) st = main_fit(&s->best, o, err);
    /* nothing is left to go on with, and nobody asked for the file */
    if (!st && !cmd->journal) (void)unlink(s->journal);
    if (st != CDMPP_EINTERRUPTED) return st;
    cd_log_err(o->log, CD_LOG_ERROR, err);
    cd_log_put(o->log, CD_LOG_ERROR, "the same command goes on from %s", s->journal);
    return cd_command_reported(st, err);
}

/* --autotune over `config` (NULL: the base that the search file names); prints its errors. */
static cdmpp_status main_search(const char *config, cd_main_options *o, cdmpp_err *err) {
    const cd_hpo_run cmd = {o->space,   config,  o->set.v, o->set.n, o->out ? o->out : "best.yaml",
                            o->journal, o->jobs, on_trial, on_note,  silent_step,
                            o};
    cd_hpo_run_state s;
    const cdmpp_status st = search(&cmd, o, &s, err);
    cd_hpo_run_free(&s);
    return st;
}

/* Threads of a training that wait for each other would spin. On a loaded machine they then keep the
 * processor from those that they wait for: a training takes five times as long. The OpenMP library
 * reads the variable before main, so the command begins once more; where that is not possible, it
 * goes on and is only slower. */
static void wait_asleep(char **argv) {
    if (!getenv("OMP_WAIT_POLICY") && !setenv("OMP_WAIT_POLICY", "passive", 1))
        (void)execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
    wait_asleep(argv);
    return cd_main_train(argc, argv, &cd_main_train_options, NULL);
}
