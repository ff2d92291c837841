/* cdmpp-profile -- tensor programs, measured. */
#include <string.h>
#include <unistd.h>

#include "profiler/main_profile.h"
#include "profiler/store.h"

#define AT(member) offsetof(cd_main_profile, member)
enum { WHAT, HOW, STORE, NETWORK };
static const char *const group[] = {"What", "How", "Store", "Network"};
static const cd_option table[] = {
    {"tasks", 0, "FILE", CD_OPT_FILES, AT(task), NULL, WHAT, "Task definitions: all_tasks.pkl, *.task.pkl, our text form, or a folder of these"},
    {"dry-run", 0, NULL, CD_OPT_FLAG, AT(dry_run), NULL, WHAT, "Only read the records and lower their programs; say which cannot be"},
    {"trials", 0, "N", CD_OPT_INT, AT(trials), "1..1000000", WHAT, "draw: different programs of a task (default: 10)"},
    {"seed", 0, "N", CD_OPT_INT, AT(seed), "0..2000000000", WHAT, "draw: of the random schedules (default: 0)"},
    {"jobs", 'j', "N", CD_OPT_INT, AT(jobs), "1..1024", HOW, "Compiler processes at a time (default: one per CPU)"},
    {"describe-device", 0, NULL, CD_OPT_FLAG, AT(describe), NULL, WHAT, "Print entries of devices.yaml for the devices named: cpu (default), opencl[:NAME], cuda[:NUMBER]"},
    {"measure", 0, NULL, CD_OPT_FLAG, AT(measure), NULL, WHAT, "With --describe-device: measure the units of a core and the memory bandwidth (a second)"},
    {"store", 0, "FILE", CD_OPT_FILE, AT(store), "*.db", STORE, "The store: one SQLite file; made where it is not there"},
    {"form", 0, "FORM", CD_OPT_WORD, AT(form), CD_STORE_FORMS, STORE, "Form of the files to import (default: by their first bytes)"},
    {"strict", 0, NULL, CD_OPT_FLAG, AT(strict), NULL, STORE, "Stop at the first line that cannot be used"},
    {"device", 0, "NAME", CD_OPT_TEXT, AT(device), NULL, STORE, "Only of this device; of imported files, the device that they were measured on"},
    {"target", 0, "TARGET", CD_OPT_TEXT, AT(target), NULL, STORE, "Only of this target, or of this kind of target (cuda, llvm ...); draw: for this target (default: the task's)"},
    {"operator", 0, "NAME", CD_OPT_TEXT, AT(operator_name), NULL, STORE, "Only of this operator, as list names it"},
    {"workload", 0, "KEY", CD_OPT_TEXT, AT(workload), NULL, STORE, "Only of this workload key"},
    {"shape", 0, "JSON", CD_OPT_TEXT, AT(shape), NULL, STORE, "Sizes to be near to: [[1,64,56,56],[64,64,3,3]]"},
    {"dtype", 0, "TYPE", CD_OPT_TEXT, AT(dtype), NULL, STORE, "Only of this type"},
    {"layout", 0, "LAYOUT", CD_OPT_TEXT, AT(layout), NULL, STORE, "Only of this layout (nchw, nhwc ...)"},
    {"limit", 'n', "N", CD_OPT_INT, AT(limit), "1..2000000000", STORE, "At most N lines (default: best 10, near 5 workloads, list and export all)"},
    {"each", 0, "N", CD_OPT_INT, AT(each), "1..1000000", STORE, "Of each near workload the N best (default: 1)"},
    {"errors", 0, NULL, CD_OPT_FLAG, AT(errors), NULL, STORE, "Failed measurements too"},
    {"steps", 0, NULL, CD_OPT_FLAG, AT(steps), NULL, STORE, "Show the schedules"},
    {"as", 0, "FORM", CD_OPT_WORD, AT(as), CD_MAIN_PROFILE_AS, STORE, "Form of what is exported (default: records)"},
    {"list-ops", 0, NULL, CD_OPT_FLAG, AT(list_ops), NULL, NETWORK, "List the operators of a network with their shapes and operations"},
    {"model-source", 0, "SOURCE", CD_OPT_WORD, AT(model_source), CD_MAIN_PROFILE_SOURCES, NETWORK, "Where the network comes from (default: zoo, built in)"},
    {"model-name", 0, "NAME", CD_OPT_TEXT, AT(model_name), NULL, NETWORK, "Name of the network (resnet-50 ...), or the ONNX file"},
    {"batch-size", 0, "N", CD_OPT_INT, AT(batch), "1..1048576", NETWORK, "Batch size (default: 1, or what the file says)"},
    {"input-size", 0, "N", CD_OPT_INT, AT(input_size), "1..1048576", NETWORK, "Edge of the image or length of the sequence (default: as published)"},
    {"dim", 0, "NAME=N", CD_OPT_TEXTS, AT(dim), NULL, NETWORK, "Value of a symbolic dimension of an ONNX file, or of a dimension of an input: 'ids[1]=128'"},
    {"input", 0, "NAME", CD_OPT_TEXTS, AT(input), NULL, NETWORK, "This input of an ONNX file is data; those that are not named are weights"},
    {"out", 'o', "FILE", CD_OPT_FILE, AT(out), NULL, STORE, "Write there what is exported (default: standard output) or what wrap tells"},
};

/* The first row whose flag is given or whose word comes first. */
typedef struct {
    const char *word;           /* NULL: has none */
    long flag;                  /* offset of a bool; -1: has none */
    cdmpp_status (*check)(const cd_main_profile *o, cdmpp_err *err);
    cdmpp_status (*run)(cd_main_profile *o, cdmpp_err *err);
} mode;
static const mode modes[] = {
    {"records", -1, cd_main_profile_records_check, cd_main_profile_records},
    {"draw", -1, cd_main_profile_draw_check, cd_main_profile_draw},
    {"store", -1, cd_main_profile_store_check, cd_main_profile_store},
    {NULL, (long)AT(list_ops), cd_main_profile_model_check, cd_main_profile_ops},
    {NULL, (long)AT(describe), cd_main_profile_describe_check, cd_main_profile_describe},
    {"wrap", -1, cd_main_profile_wrap_check, cd_main_profile_wrap},
};

static const mode *mode_of(const cd_main_profile *o, const char *word) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const mode *m = &modes[i];
        if (m->flag >= 0 && *((const bool *)o + m->flag)) return m;
        if (m->word && word && !strcmp(m->word, word)) return m;
    }
    return NULL;
}

/* "records, --list-tasks, ..." */
static void list_modes(cd_buf *b) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const char *name = modes[i].word;
        for (size_t k = 0; !name && k < sizeof table / sizeof *table; k++)
            if ((long)table[k].offset == modes[i].flag) name = table[k].name;
        cd_buf_putf(b, "%s%s%s", i ? ", " : "", modes[i].word ? "" : "--", name ? name : "");
    }
}

/* The operands without the word of the mode. */
static cd_texts rest(const cd_said *said, const mode *m) {
    cd_texts t = said->operand;
    if (m->flag < 0) t.v++, t.n--;
    return t;
}

static cdmpp_status check(void *to, const cd_said *said, cdmpp_err *err) {
    cd_main_profile *o = to;
    const char *word = said->operand.n ? said->operand.v[0] : NULL;
    const mode *m = mode_of(o, word);
    if (!m) {
        cd_buf b = {0};
        list_modes(&b);
        (void)CD_FAIL(err, EUSAGE, "expected what to do (%s), found '%.60s'", b.p ? b.p : "", word ? word : "");
        cd_buf_free(&b);
        return CDMPP_EUSAGE;
    }
    o->operand = rest(said, m);
    return m->check(o, err);
}

static const char *const use[] = {"records --tasks FILE [OPTION...] LOG|FOLDER...",
                                  "draw --tasks FILE [--trials N] [--seed N] [--target TARGET] [--out FILE]",
                                  "store import|list|best|near|export|stats --store FILE [OPTION...] [LOG|TABLE|TRACE|FOLDER...]",
                                  "--list-ops --model-name NAME|FILE [OPTION...]",
                                  "--describe-device [--measure] [cpu|opencl[:NAME]|cuda[:NUMBER]...]",
                                  "wrap [--json] [--out FILE] -- COMMAND [ARGUMENT...]",
                                  NULL};
static const char *const example[] = {
    "Which records can be lowered", "cdmpp-profile records --dry-run --tasks network_info measure_records/",
    "Keep what others measured, and ask for the best schedules of a task",
    "cdmpp-profile store import --store all.db --tasks network_info measure_records/\n"
    "cdmpp-profile store best --store all.db --device v100 --workload '[\"9f8e...\", [1, 64, 56, 56]]'",
    "Shapes and operations of an ONNX file", "cdmpp-profile --list-ops --model-source onnx --model-name net.onnx --batch-size 8", NULL};
static const char *const see[] = {"cdmpp-extract(1)", "cdmpp-train(1)", NULL};
static const cd_command self = {
    "cdmpp-profile", "measure tensor programs", use,
    "Makes measure records in the format of TVM's auto_scheduler on this machine.\n\n"
    "records: reads measure records, of any tuner and machine. \"-\" is standard input. A record that cannot be used is "
    "counted and named, the others are done, and the exit status is 3.\n\n"
    "draw: writes records of random schedules of all tasks, by the rules of TVM's auto_scheduler; they have no time yet.\n\n"
    "store: keeps measurements in one SQLite file that many may write at once. import reads logs, tables of operators, "
    "Nsight Systems' exports and PyTorch's traces; list shows workloads, best the fastest measurements, near those of the "
    "nearest shapes of the same operator; export writes records, CSV or JSON; stats counts.\n\n"
    "wrap: runs a program and tells on standard error its time, resident memory, and heap by a library that is loaded into it; "
    "the exit status is the program's.",
    table, sizeof table / sizeof *table, group, "", example, NULL, see, NULL, check};

static volatile sig_atomic_t stop;
/* The next program is not begun; the second signal kills. */
static void on_signal(int sig) { stop = sig; }

static void take_signals(void) {
    struct sigaction act = {.sa_handler = on_signal};
    act.sa_flags = (int)SA_RESETHAND; /* and no SA_RESTART */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv) {
    cd_main_profile o = {.stop = &stop};
    cdmpp_err err = {0};
    cd_face f;
    int code;
    if (!cd_face_begin(&f, &self, argc, argv, &o, &code)) return code;
    const mode *m = mode_of(&o, f.said.operand.n ? f.said.operand.v[0] : NULL);
    o.json = f.said.json;
    o.log = &f.log;
    take_signals();
    cdmpp_status st = m->run(&o, &err);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !st) st = CD_FAIL(&err, EIO, "cannot write to standard output");
    if (st) cd_log_err(&f.log, CD_LOG_ERROR, &err);
    cd_face_end(&f);
    return st ? cdmpp_exit_code(st) : o.bad ? 3 : o.exit_code;
}
