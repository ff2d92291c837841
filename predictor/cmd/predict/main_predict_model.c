/* The default cost model of cdmpp-predict: that of processors or that of GPUs, by the device that
 * the user names, else by the first record. One file answers for all records: those of the other
 * kind name a device that it does not know, and get an error each. */
#include "dataset/extract/extract.h"
#include "features/task/task.h"
#include "predictor/cmd/predict/main_predict.h"
#include "predictor/score/score.h"
#include "profiler/records/records.h"

cdmpp_status cd_predict_devices(const char *file, cd_log *log, cd_device_table **out,
                                cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cdmpp_status st = cd_device_table_open(&a, file, NULL, &diag, NULL, out, err);
    if (st && diag.n) cd_log_lines(log, CD_LOG_ERROR, diag.text.p);
    if (!st && log) cd_device_table_say(*out, log);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* -1: nobody describes it. */
static int kind_of(const char *device, const char *devices) {
    cd_device_table *t = NULL;
    const cd_device *d;
    if (cd_predict_devices(devices, NULL, &t, NULL)) return -1;
    const int gpu = cd_device_table_find(t, device, &d, NULL) ? -1 : d->kind == CD_DEVICE_GPU;
    cd_device_table_free(t);
    return gpu;
}

/* "FILE:LINE" */
static bool place_is_gpu(const char *where) {
    cd_buf path = {0}, text = {0};
    cd_arena a = {0};
    cd_record record;
    long number;
    const bool gpu = !cd_extract_line(where, &path, &number, &text, NULL) &&
                     !cd_record_read(&a, text.p ? text.p : "", text.n, &record, NULL) &&
                     cd_target_is_gpu(record.target);
    cd_arena_free(&a);
    cd_buf_free(&path);
    cd_buf_free(&text);
    return gpu;
}

cdmpp_status cd_predict_default_model(const cd_predict_asked *o, cd_arena *a, const char **out,
                                      cdmpp_err *err) {
    int gpu = o->device ? kind_of(o->device, o->devices) : -1;
    if (gpu < 0 && o->explain) gpu = place_is_gpu(o->explain);
    if (gpu < 0 && o->input->n) gpu = cd_record_first_is_gpu(o->input->v, 1);
    *out = gpu > 0 ? cd_default_model_for_gpu(a, NULL, NULL) : NULL;
    if (!*out) *out = cd_default_model_path(a);
    return *out ? CDMPP_OK : cd_default_model_missing(err);
}

void cd_predict_say_other(const cd_model *m, const char *path, const cd_stream_stats *n,
                          cd_log *log) {
    const cd_here *h = cd_model_here(m);
    if (n->assumed)
        cd_log_put(
            log, CD_LOG_WARNING,
            "%zu of %zu answers are for %s, because it is the only device of the model: no -model= "
            "of a target and no folder says whose they are (first: %s); --device %s says so",
            n->assumed, n->scored, cd_model_device(m, 0), n->assumed_at, cd_model_device(m, 0));
    if (h && n->uncorrected)
        cd_log_put(log, CD_LOG_WARNING,
                   "%s corrects times of %s alone: %zu of %zu answers are of another device "
                   "(%.60s), and are not corrected",
                   path, h->name, n->uncorrected, n->scored, n->other);
}
