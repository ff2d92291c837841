/* Progress of a training as one line on a terminal or as log lines, from events of several members
 * at once. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

#include "learner/train/train.h"

/* What cdmpp-train prints when it is done: the same figures that the model file and the report
 * hold. */

static void put_figures(cd_buf *b, const cd_learner_result *l, double level) {
    for (int k = 0; k < CD_FILTER_N_DROP; k++)
        if (l->filter.drop[k])
            cd_buf_putf(b, "left out %zu of the %zu programs of the data set: %s\n",
                        l->filter.drop[k], l->filter.in, cd_filter_drop_text((cd_filter_drop)k));
    cd_buf_putf(b, "%s", l->notes.p ? l->notes.p : "");
    for (int p = 0; p < CD_SPLIT_N_PART; p++)
        cd_metric_text(b, cd_split_part_name((cd_split_part)p), cd_split_name(l->kind),
                       &l->metrics[p]);
    for (int k = 0; k < 2 && l->tuner[1].n; k++)
        cd_metric_text(b, k ? "test by profile tuner" : "validation by profile tuner",
                       cd_split_name(l->kind), &l->tuner[k]);
    for (int p = 0; p < CD_SPLIT_N_PART; p++)
        cd_uncertainty_text(b, cd_split_part_name((cd_split_part)p), level, &l->unsure[p]);
}

void cd_train_print_text(cd_buf *b, const cd_learner_result *l, const char *path,
                         const char *report, double level, bool brief) {
    if (brief && l->notes.p) cd_buf_puts(b, l->notes.p);
    if (brief)
        cd_metric_text(b, cd_split_part_name(CD_SPLIT_PART_TEST), cd_split_name(l->kind),
                       &l->metrics[CD_SPLIT_PART_TEST]);
    else put_figures(b, l, level);
    cd_buf_putf(b, "model %s, %zu bytes\n", path, l->file.n);
    if (report[0] && !brief) cd_buf_putf(b, "report %s\n", report);
}

void cd_train_print_notes(cd_buf *b, const char *lines) {
    cd_buf_puts(b, "[");
    for (const char *at = lines; at && *at;) {
        const size_t n = strcspn(at, "\n");
        if (at > lines) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, at, n);
        at += n + (at[n] == '\n');
    }
    cd_buf_puts(b, "]");
}

void cd_train_print_json(cd_buf *b, const cd_learner_result *l, const char *path) {
    cd_buf_puts(b, "{\"schema\":\"cdmpp.train\",\"command\":\"cdmpp-train\",\"model_file\":");
    cd_buf_put_json_str(b, path, strlen(path));
    cd_buf_puts(b, ",\"notes\":");
    cd_train_print_notes(b, l->notes.p);
    cd_buf_putf(b, ",\"result\":%s}\n", cd_model_header(l->model));
}

/* ---- library operators ---- */
static const char *check_words(const cd_config *c) {
    static const char *const words[] = {
        "", "the tenth with the most work of each operator and device, held out",
        "each device held out in turn"};
    return words[c->operators_check];
}

static bool of_devices(const cd_library_op_model *m) {
    bool any = false;
    for (size_t i = 0; i < m->n_spread; i++) any |= m->spread[i].held == CD_LIBRARY_OP_HELD_DEVICE;
    return any;
}

/* Each row is asked of an interval that was fitted without its fold or device. */
static void put_coverage(cd_buf *b, const cd_library_op_train_result *l) {
    static const char *const words[] = {"sizes held out", "the largest, held out",
                                        "devices held out", "makers held out"};
    bool any = false;
    for (int h = 0; h < CD_LIBRARY_OP_N_HELD; h++)
        for (size_t c = 0; c <= CD_N_LIBRARY_OP_CLASS; c++) {
            const cd_library_op_coverage *v = &l->coverage[h][c];
            if (!v->n) continue;
            if (!any)
                cd_buf_puts(b, "\nintervals of level 0.9, each fitted without the rows that it is "
                               "asked about:\n\n"
                               "| rows | class | n | parts | in interval % |\n| --- | --- | --: | "
                               "--: | --: |\n");
            any = true;
            const char *class = c < CD_N_LIBRARY_OP_CLASS
                                    ? cd_library_op_class_name((cd_library_op_class)c)
                                    : "**all**";
            cd_buf_putf(b, "| %s | %s | %" PRIu64 " | %" PRIu64 " | %.1f |\n", words[h], class,
                        v->n, v->parts, 100 * (double)v->inside / (double)v->n);
        }
    if (any) cd_buf_puts(b, "\n");
    if (!l->model->n_spread)
        cd_buf_puts(b, "no intervals: too few rows, or operators.calibration_rows is 0\n");
    else if (!of_devices(l->model))
        cd_buf_puts(b, "there is no interval on a device that was not trained on: it takes rows of "
                       "three devices\n");
}

void cd_train_print_left_out(cd_buf *b, const cd_config *c, const cd_library_op_data *d,
                             size_t n_row) {
    for (int k = 0; k < CD_LIBRARY_OP_N_DROP; k++) {
        if (k != CD_LIBRARY_OP_DROP_EXCLUDED && d->drop[k])
            cd_buf_putf(b, "left out %zu rows: %s\n", d->drop[k],
                        cd_library_op_drop_text((cd_library_op_drop)k));
        for (size_t i = 0;
             k == CD_LIBRARY_OP_DROP_EXCLUDED && d->drop[k] && i < c->operators_exclude.n; i++)
            if (d->excluded[i])
                cd_buf_putf(b, "left out %zu rows: by operators.exclude, %s\n", d->excluded[i],
                            c->operators_exclude.v[i]);
    }
    if (n_row < d->n)
        cd_buf_putf(
            b, "left out %zu rows: more than operators.max_rows, %lld of one operator and device\n",
            d->n - n_row, (long long)c->operators_max_rows);
}

cdmpp_status cd_train_print_operators_text(cd_buf *b, const cd_config *c,
                                           const cd_library_op_data *d,
                                           cd_library_op_train_result *l, const char *path,
                                           cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    cd_buf_putf(b, "%zu of %zu rows trained on, %zu devices\n", l->n_row, d->n_line, d->n_known);
    cd_train_print_left_out(b, c, d, l->n_row);
    if (l->check.n) {
        cd_buf_putf(b, "\ncheck: %s (n=%zu, seed=%lld)\n\n", check_words(c), l->check.n,
                    (long long)c->operators_seed);
        st = cd_library_op_score_text(&l->check, b, err);
        cd_buf_puts(b, "\n");
    }
    put_coverage(b, l);
    cd_buf_putf(b, "model %s, %zu bytes\n", path, l->file.n);
    return st;
}

void cd_train_print_operators_json(cd_buf *b, const cd_config *c, const cd_library_op_data *d,
                                   const cd_library_op_train_result *l, const char *path) {
    cd_buf notes = {0};
    cd_buf_puts(b, "{\"schema\":\"cdmpp.train\",\"command\":\"cdmpp-train\",\"model_file\":");
    cd_buf_put_json_str(b, path, strlen(path));
    cd_buf_puts(b, ",\"check\":[");
    for (size_t i = 0; i < l->check.n; i++) {
        const cd_library_op_score_row *r = &l->check.row[i];
        cd_buf_putf(b, "%s[\"%s\",\"%s\",%.6g]", i ? "," : "", cd_library_op_class_name(r->class),
                    r->device, r->error);
    }
    cd_buf_puts(b, "],\"notes\":");
    cd_train_print_left_out(&notes, c, d, l->n_row);
    cd_train_print_notes(b, notes.p);
    cd_buf_puts(b, "}\n");
    b->oom |= notes.oom;
    cd_buf_free(&notes);
}

/* ---- operators of language models ---- */
/* What became of the lines, by reason. */
static void put_llm_left_out(cd_buf *b, const cd_config *c, const cd_llm_op_table *t,
                             const cd_llm_op_train_result *l) {
    cd_buf_putf(b, "%zu of %zu rows trained on, %zu devices\n", l->n_row - l->n_refused, t->n_line,
                t->n_known);
    for (int k = 0; k < CD_LLM_OP_N_DROP; k++)
        if (t->drop[k])
            cd_buf_putf(b, "left out %zu rows: %s\n", t->drop[k],
                        cd_llm_op_drop_text((cd_llm_op_drop)k));
    if (t->repeated)
        cd_buf_putf(b, "%zu rows are further times of others: the median counts\n", t->repeated);
    if (l->n_refused)
        cd_buf_putf(b,
                    "left out %zu rows: the device is described without units for their type, or "
                    "without a number that is needed\n",
                    l->n_refused);
    if (l->n_row < t->n)
        cd_buf_putf(b,
                    "left out %zu rows: more than operators.max_rows, %lld of one kind and device "
                    "(as neighbours they count)\n",
                    t->n - l->n_row, (long long)c->operators_max_rows);
}

void cd_train_print_llm_json(cd_buf *b, const cd_llm_op_table *t, const cd_llm_op_train_result *l,
                             const char *path) {
    cd_buf_puts(b, "{\"schema\":\"cdmpp.train\",\"command\":\"cdmpp-train\",\"model_file\":");
    cd_buf_put_json_str(b, path, strlen(path));
    cd_buf_putf(b,
                ",\"rows\":{\"lines\":%zu,\"trained\":%zu,\"bad\":%zu,\"no_time\":%zu,"
                "\"questions\":%zu,\"other_devices\":%zu,\"repeated\":%zu,\"refused\":%zu}}\n",
                t->n_line, l->n_row - l->n_refused, t->drop[CD_LLM_OP_DROP_BAD],
                t->drop[CD_LLM_OP_DROP_TIME], t->drop[CD_LLM_OP_DROP_QUESTION],
                t->drop[CD_LLM_OP_DROP_DEVICE], t->repeated, l->n_refused);
}

void cd_train_print_llm_text(cd_buf *b, const cd_config *c, const cd_llm_op_table *t,
                             const cd_llm_op_train_result *l, const char *path) {
    bool none = false;
    put_llm_left_out(b, c, t, l);
    for (size_t f = 0; f < CD_LLM_OP_N_FAMILY; f++)
        none |= l->model->part[f][CD_LLM_OP_SET_UNSEEN].gbt &&
                !l->model->part[f][CD_LLM_OP_SET_UNSEEN].spread;
    if (none)
        cd_buf_puts(b, "some kinds of operators have no interval on a device that was not trained "
                       "on: an interval takes rows of three devices, and 60 rows of the kind\n");
    cd_buf_putf(b, "model %s, %zu bytes\n", path, l->file.n);
}

void cd_train_progress_begin(cd_train_progress *p, cd_log *log) {
    struct winsize w = {0};
    *p =
        (cd_train_progress){.log = log, .tty = !log->json && cd_log_redraws(log->out), .width = 80};
    if (p->tty && ioctl(fileno(log->out), TIOCGWINSZ, &w) == 0 && w.ws_col) p->width = w.ws_col;
    p->every_s = p->tty ? 0.2 : cd_log_every_s(log);
    pthread_mutex_init(&p->lock, NULL);
}

/* ---- figures ---- */
static double done(const cd_train_progress *p) {
    double n = 0;
    for (size_t i = 0; i < p->n_member; i++)
        n += (double)p->member[i].last.step * (double)p->member[i].last.n_sample;
    return n;
}

double cd_train_progress_rate(const cd_train_progress *p, double now) {
    const double s = now - p->begin_s;
    return s > 0 ? (done(p) - p->begin_sample) / s : 0;
}

double cd_train_progress_eta(const cd_train_progress *p, double now) {
    const double rate = cd_train_progress_rate(p, now);
    double left = 0;
    for (size_t i = 0; i < p->n_member; i++) {
        const cd_progress_event *t = &p->member[i].last;
        if (!t->end && t->n_step > t->step)
            left += (double)(t->n_step - t->step) * (double)t->n_sample;
    }
    if (p->n_member) {
        const cd_progress_event *t = &p->member[p->n_member - 1].last;
        if (t->n_member > p->n_member)
            left += (double)(t->n_member - p->n_member) * (double)t->n_step * (double)t->n_sample;
    }
    return rate > 0 ? left / rate : (double)NAN;
}

/* ---- texts ---- */
static void put_rate(cd_buf *b, double v) {
    static const char *const unit[] = {"", "k", "M", "G"};
    int k = 0;
    while (k < 3 && v >= 999.5) v /= 1000, k++;
    cd_buf_putf(b, "%.3g%s", v, unit[k]);
}

static void put_loss(cd_buf *b, const char *before, double v, const char *after) {
    if (!isnan(v)) cd_buf_putf(b, "%s%.4g%s", before, v, after);
}

/* Members that are still learning; when all are done, the last. */
static void put_bar(cd_buf *b, const cd_train_progress *p, double now) {
    const size_t n = p->n_member;
    size_t over = 0, of = n ? (size_t)p->member[n - 1].last.n_member : 0;
    for (size_t i = 0; i < n; i++) over += p->member[i].last.end;
    for (size_t i = 0; i < n; i++) {
        const cd_progress_event *t = &p->member[i].last;
        if (t->end && !(over == n && i == n - 1)) continue;
        cd_buf_putf(b, "%s %llu/%llu", p->member[i].name, (unsigned long long)t->step,
                    (unsigned long long)t->n_step);
        put_loss(b, " ", t->valid, "");
        cd_buf_puts(b, " | ");
    }
    if (of > 2) cd_buf_putf(b, "%zu/%zu members | ", over, of);
    put_rate(b, cd_train_progress_rate(p, now));
    cd_buf_puts(b, " samples/s | ETA ");
    cd_progress_put_time(b, cd_train_progress_eta(p, now));
}

static void put_line(cd_buf *b, const cd_train_progress *p, const cd_progress_event *t,
                     double now) {
    cd_progress_put_time(b, now - p->begin_s);
    cd_buf_putf(b, " %s: %s %llu/%llu", t->member, t->unit, (unsigned long long)t->step,
                (unsigned long long)t->n_step);
    if (!isnan(t->train) || !isnan(t->valid)) cd_buf_puts(b, ", loss");
    put_loss(b, " ", t->train, " train");
    put_loss(b, isnan(t->train) ? " " : ", ", t->valid, " validation");
    cd_buf_puts(b, "; ");
    put_rate(b, cd_train_progress_rate(p, now));
    cd_buf_puts(b, " samples/s, ETA ");
    cd_progress_put_time(b, cd_train_progress_eta(p, now));
}

/* ---- steps ---- */
static void note(cd_train_progress *p, const cd_progress_event *t) {
    size_t i = 0;
    while (i < p->n_member &&
           strncmp(p->member[i].name, t->member, sizeof p->member[i].name - 1) != 0)
        i++;
    if (i == p->n_member) {
        if (i == CD_TRAIN_PROGRESS_MEMBERS) return;
        p->n_member++;
        snprintf(p->member[i].name, sizeof p->member[i].name, "%s", t->member);
    }
    p->member[i].last = *t;
    p->member[i].last.member = p->member[i].last.unit = NULL;
}

/* The clock is a parameter, so that tests decide what time it is. */
void cd_train_progress_step_at(cd_train_progress *p, const cd_progress_event *t, double now) {
    cd_buf b = {0};
    if (p->log->level < CD_LOG_INFO) return;
    pthread_mutex_lock(&p->lock);
    note(p, t);
    if (!p->begun) p->begun = true, p->begin_s = p->shown_s = now, p->begin_sample = done(p);
    const bool verbose = p->log->level >= CD_LOG_DEBUG, due = now - p->shown_s >= p->every_s;
    if (due) p->shown_s = now;
    if (verbose || (due && !p->tty)) {
        put_line(&b, p, t, now);
        cd_log_put(p->log, CD_LOG_INFO, "%s", b.p ? b.p : "");
        cd_buf_clear(&b);
    }
    if (due && p->tty) {
        put_bar(&b, p, now);
        /* a full line would wrap */
        if (b.p) cd_log_redraw(p->log, b.p, p->width > 8 ? p->width - 1 : 7);
    }
    pthread_mutex_unlock(&p->lock);
    cd_buf_free(&b);
}

void cd_train_progress_step(cd_train_progress *p, const cd_progress_event *t) {
    cd_train_progress_step_at(p, t, cd_clock_wall());
}

void cd_train_progress_end(cd_train_progress *p) {
    cd_buf b = {0};
    const double now = cd_clock_wall(), rate = cd_train_progress_rate(p, now);
    if (p->begun) {
        cd_buf_puts(&b, "trained on ");
        put_rate(&b, done(p));
        cd_buf_putf(&b, " samples in %.1f s (", now - p->begin_s);
        put_rate(&b, rate);
        cd_buf_puts(&b, " samples/s)");
        cd_log_put(p->log, CD_LOG_INFO, "%s", b.p ? b.p : "");
    }
    cd_buf_free(&b);
    pthread_mutex_destroy(&p->lock);
}
