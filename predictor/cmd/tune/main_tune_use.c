/* What a search says at its end: how fast its programs are beside the peak of what measured them,
 * and the command that estimates the network with them. */
#include <string.h>

#include "predictor/cmd/tune/main_tune.h"
#include "predictor/estimate/estimate.h"

typedef cd_main_tune options;

/* Of one core of a processor, of a GPU; 0: nobody describes it. */
static double peak_of(const char *device) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cd_device_table *t = NULL;
    const cd_device *d;
    double peak = 0;
    if (!cd_device_table_open(&a, NULL, NULL, &diag, NULL, &t, NULL) &&
        !cd_device_table_find(t, device, &d, NULL) && d->fp32_gflops > 0)
        peak = d->kind == CD_DEVICE_GPU ? d->fp32_gflops
               : d->cores > 0           ? d->fp32_gflops / d->cores
                                        : 0;
    cd_diag_free(&diag);
    cd_device_table_free(t);
    cd_arena_free(&a);
    return peak;
}

double cd_main_tune_peak(cd_tune_session *s) {
    const char *target = s->what->n ? s->what->unit[0].of.target : "llvm";
    const char *name =
        s->board ? cd_remote_measure_about(s->board)->model
                 : cd_describe_namer_ask(&s->namer, (cd_str){target, strcspn(target, " ")});
    return name && name[0] ? peak_of(name) : 0;
}

static void put_word(cd_buf *b, const char *option, const char *text) {
    if (!text || !text[0]) return;
    cd_buf_putf(b, " %s ", option);
    cd_escape_shell(b, cd_str_of(text));
}

static void put_number(cd_buf *b, const char *option, int n) {
    if (n) cd_buf_putf(b, " %s %d", option, n);
}

static bool all_tried(const cd_tune_session *s) {
    for (uint32_t i = 0; i < s->what->n; i++)
        if (!cd_tune_session_state(s, i) ||
            !(cd_tune_session_state(s, i)->best_s < CD_TUNE_FAILED_S))
            return false;
    return true;
}

/* The file of the best ones has all tasks; of those that are not in the log candidates are
 * drawn. */
static void put_schedules(cd_buf *b, const options *o, const cd_tune_session *s) {
    put_word(b, o->best ? "--schedules" : "--records", o->best ? o->best : o->out);
    if (!o->best && !all_tried(s)) put_number(b, "--trials", CD_SCHEDULE_DB_TRIALS);
}

/* Programs of a board are those of another device, and a size that is known at run time has several
 * networks: of these nothing is said. */
const char *cd_main_tune_use(options *o, const cd_tune_session *s) {
    const cd_tune_tasks_options *w = &o->what;
    const char *network = w->network ? w->network : w->of_network;
    cd_buf b = {0};
    if (!network || !o->out || o->session.host.n || o->executor == 2) return NULL;
    cd_buf_puts(&b, "cdmpp-replay");
    put_word(&b, "--network", network);
    for (size_t k = 0; k < w->file.n; k++) put_word(&b, "--tasks", w->file.v[k]);
    put_number(&b, "--batch", w->batch);
    put_number(&b, "--input-size", w->input_size);
    for (size_t k = 0; k < w->dim.n; k++) put_word(&b, "--dim", w->dim.v[k]);
    for (size_t k = 0; k < w->input.n; k++) put_word(&b, "--input", w->input.v[k]);
    put_word(&b, "--layout", w->layout);
    put_word(&b, "--target", w->target);
    if (!o->default_model) put_word(&b, "--cost-model", o->model);
    if (!o->default_model) put_word(&b, "--device", o->session.device);
    put_schedules(&b, o, s);
    const char *text = b.oom ? NULL : cd_arena_text(&o->arena, b.p);
    cd_buf_free(&b);
    return text;
}
