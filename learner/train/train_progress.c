/* Progress of a training as one line on a terminal or as log lines, from events of several members
 * at once. */
#include "learner/train/train.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

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
