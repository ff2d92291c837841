/* The options of cdmpp-train and of cdmpp-mpi train, and their texts. What a choice and a search
 * need is last in the table, because cdmpp-mpi has neither. */
#include "learner/cmd/main_train.h"

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

const cd_command cd_main_train_options = {
    "cdmpp-train", "train a latency model from a configuration",
    use,           about,
    table,         N_ROW,
    group,         "*.yaml|*.yml",
    example,       file,
    see,           NULL,
    check};
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
    check};
