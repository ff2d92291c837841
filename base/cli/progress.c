/* A progress bar. It is redrawn at most five times a second, and only on a terminal; in a log file
 * a bar would be thousands of lines. */
#include "base/cli/cli.h"

#include <math.h>
#include <string.h>

#define BAR 30

void cd_progress_begin(cd_progress *p, cd_log *log, const char *what, const char *unit,
                       uint64_t total) {
    memset(p, 0, sizeof *p);
    p->log = log;
    p->what = what;
    p->unit = unit;
    p->total = total;
    p->begin_s = p->shown_s = cd_clock_wall();
    p->tty = !log->json && cd_log_redraws(log->out);
    p->every_s = p->tty ? 0.2 : cd_log_every_s(log);
    pthread_mutex_init(&p->lock, NULL);
}

void cd_progress_put_time(cd_buf *b, double s) {
    const unsigned long t = s < 1e9 ? (unsigned long)(s + 0.5) : 999999999;
    if (isnan(s)) cd_buf_puts(b, "?");
    else if (t < 3600) cd_buf_putf(b, "%lu:%02lu", t / 60, t % 60);
    else cd_buf_putf(b, "%lu:%02lu:%02lu", t / 3600, t / 60 % 60, t % 60);
}

/* The rate is the mean since the start: it is steady, and the remaining time follows from it. */
void cd_progress_text(const cd_progress *p, double elapsed_s, char *buf, size_t n) {
    const double rate = elapsed_s > 0 ? (double)p->done / elapsed_s : 0;
    char bar[BAR + 1];
    cd_buf eta = {0};
    if (!p->total) {
        snprintf(buf, n, "%s: %llu %s, %.3g %s/s", p->what, (unsigned long long)p->done, p->unit,
                 rate, p->unit);
        return;
    }
    const uint64_t done = p->done < p->total ? p->done : p->total;
    const double part = (double)done / (double)p->total;
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)(part * BAR));
    bar[BAR] = '\0';
    cd_progress_put_time(&eta, rate > 0 ? (double)(p->total - done) / rate : (double)NAN);
    snprintf(buf, n, "%s: [%s] %3d %%  %llu/%llu %s  %.3g %s/s  ETA %s", p->what, bar,
             (int)(part * 100), (unsigned long long)done, (unsigned long long)p->total, p->unit,
             rate, p->unit, eta.p ? eta.p : "?");
    cd_buf_free(&eta);
}

/* Threads may step out of order, so the count only grows. The lock of the log is taken inside
 * redraw() and cd_log_put(). */
void cd_progress_step(cd_progress *p, uint64_t done) {
    char text[256];
    if (p->log->level < CD_LOG_INFO) return;
    pthread_mutex_lock(&p->lock);
    if (done > p->done) p->done = done;
    const double t = cd_clock_wall();
    const bool show = t - p->shown_s >= p->every_s;
    if (show) {
        p->shown_s = t;
        cd_progress_text(p, t - p->begin_s, text, sizeof text);
        if (p->tty) cd_log_redraw(p->log, text, (int)sizeof text);
        else cd_log_put(p->log, CD_LOG_INFO, "%s", text);
    }
    pthread_mutex_unlock(&p->lock);
}

void cd_progress_end(cd_progress *p) {
    const double s = cd_clock_wall() - p->begin_s;
    cd_log_put(p->log, CD_LOG_INFO, "%s: %llu %s in %.2f s (%.3g %s/s)", p->what,
               (unsigned long long)p->done, p->unit, s, s > 0 ? (double)p->done / s : 0, p->unit);
    pthread_mutex_destroy(&p->lock);
}

void cd_progress_clear(cd_progress *p) {
    if (p->tty && p->log->partial) cd_log_redraw(p->log, "", 0);
    pthread_mutex_destroy(&p->lock);
}
