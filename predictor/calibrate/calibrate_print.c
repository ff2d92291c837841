/* What a calibration found, for people, for --json, and for the header of the model. */
#include <math.h>
#include <stdio.h>

#include "predictor/calibrate/calibrate.h"

static void put_row(cd_buf *b, const char *name, const cd_calibrate_figures *f) {
    char inside[32] = "-";
    if (f->ranged) (void)snprintf(inside, sizeof inside, "%.0f %%", 100 * f->inside);
    cd_buf_putf(b, "%-8s %5zu %9.1f %% %9.1f %% %13.3f %15s\n", name, f->n, 100 * f->mape,
                100 * f->median, f->mean_log, inside);
}

/* Nothing tells how far off these are: they are in no column of intervals. */
static void put_unranged(cd_buf *b, const cd_calibrate_figures *f) {
    if (f->ranged < f->n)
        cd_buf_putf(b,
                    "%zu of %zu programs are unlike those of the model and of the others that were "
                    "measured, and have no interval\n",
                    f->n - f->ranged, f->n);
}

static void put_noise(cd_buf *b, const cd_calibrate_result *r) {
    if (isnan(r->noise))
        cd_buf_putf(b, "noise: not known, %zu programs were measured twice\n", r->pairs);
    else
        cd_buf_putf(b, "noise: %.1f %%, the median difference of %zu programs measured twice\n",
                    100 * expm1(r->noise), r->pairs);
}

static void put_law(cd_buf *b, const cd_network_cost_fit *f) {
    cd_buf_putf(b, "networks: %lld were run; a network takes %.3f times its operators alone%s",
                (long long)f->networks, f->lift, f->lift_from > 0 ? ", where it moves much" : "");
    if (f->call_s > 0) cd_buf_putf(b, ", %.3g us a call", 1e6 * f->call_s);
    if (f->refill_bytes_per_s > 0)
        cd_buf_putf(b, ", its weights at %.3g GB/s%s", 1e-9 * f->refill_bytes_per_s,
                    f->refill_from > 0 ? " where it has many" : "");
    cd_buf_putf(b, ", +- %.1f %%\n", 100 * f->spread);
}

/* ---- the verdict ---- */
/* The figure by which it is decided is the mean |ln|; the median error is easier to read, and is
 * told where it goes the same way. */
static void put_change(cd_buf *b, const cd_calibrate_result *r) {
    const bool same =
        (r->after.median > r->before.median) == (r->after.mean_log > r->before.mean_log);
    if (same)
        cd_buf_putf(b, "median error of %zu held-out programs %.0f to %.0f %%", r->after.n,
                    100 * r->before.median, 100 * r->after.median);
    else
        cd_buf_putf(b, "mean error of %zu held-out programs (as a factor) %.2f to %.2f", r->after.n,
                    exp(r->before.mean_log), exp(r->after.mean_log));
}

static void put_verdict(cd_buf *b, const cd_calibrate_told *t) {
    const cd_calibrate_result *r = t->result;
    const bool noisy = cd_calibrate_noisy(r), refused = !t->out && noisy;
    if (refused)
        cd_buf_putf(
            b, "too noisy: two times of the same program differ by %.0f %% (at most %.0f %%), ",
            100 * expm1(r->noise), 100 * CD_CALIBRATE_NOISE);
    else cd_buf_puts(b, cd_calibrate_better(r) ? "better: " : "not better: ");
    put_change(b, r);
    if (!t->out) cd_buf_puts(b, "; nothing written");
    else cd_buf_putf(b, "; written to %s (removing it undoes this)", t->out);
    if (t->out && r->measured_noise > CD_CALIBRATE_NOISE)
        cd_buf_putf(b, "; measured noise %.0f %%, its intervals are wider for that",
                    100 * expm1(r->measured_noise));
}

/* What a noisy machine measured stays noisy: the log goes. */
static void put_next(cd_buf *b, const cd_calibrate_told *t) {
    const bool noisy = cd_calibrate_noisy(t->result);
    if (t->out || !t->again) return;
    if (noisy)
        cd_buf_putf(b, "next, when other work has ended: rm -f '%s' && %s --seconds %.0f", t->log,
                    t->again, t->limit_s);
    else cd_buf_putf(b, "next: %s --seconds %.0f", t->again, t->again_s);
}

void cd_calibrate_text(cd_buf *b, const cd_calibrate_told *t) {
    const cd_calibrate_result *r = t->result;
    char limit[64] = "";
    if (r->widen > 1 && isfinite(r->most))
        (void)snprintf(limit, sizeof limit, ", ends moved at most to %.3g times the median",
                       exp(r->most));
    cd_buf_putf(b,
                t->given ? "device: %s (%s); %s of the model stands for it\n"
                         : "machine: %s (%s); %s of the model stands for it\n",
                t->name, t->cpu, t->device);
    if (t->given) cd_buf_putf(b, "logs: %zu programs of %zu tasks\n", r->programs, r->tasks);
    else
        cd_buf_putf(
            b,
            "measured: %zu programs of %zu tasks, %zu by this run in %.0f s of at most %.0f s%s\n",
            r->programs, r->tasks, t->measured->fresh - t->measured->repeats, t->seconds,
            t->limit_s, t->cpu_time ? " of the processor" : "");
    if (!t->given && !t->measured->late && !t->most && t->seconds < t->limit_s)
        cd_buf_puts(b, "every candidate is measured, before the time is over\n");
    put_noise(b, r);
    cd_buf_putf(b, "programs     n       MAPE     median  mean |ln p/y|  in 90 %% interval\n");
    put_row(b, "before", &r->before);
    put_row(b, "after", &r->after);
    cd_buf_puts(b, "after: each program by a correction that was made of other tasks\n");
    put_unranged(b, &r->after);
    if (t->costs && t->costs->networks) put_law(b, t->costs);
    if (t->out)
        cd_buf_putf(b,
                    "%s: %s corrected by %zu programs (%.0f %% of what trees learned), its "
                    "intervals times %.2f%s\n",
                    t->out, t->model, r->programs, 100 * r->share, r->widen, limit);
    if (t->out && t->as_before)
        cd_buf_putf(b, "schedules are chosen as before, as for %s: no network becomes slower\n",
                    t->device);
    put_verdict(b, t);
    cd_buf_puts(b, "\n");
    if (t->out || !t->again) return;
    put_next(b, t);
    cd_buf_puts(b, "\n");
}

static void put_figures(cd_json_writer *w, const char *key, const cd_calibrate_figures *f) {
    cd_json_write_key(w, key);
    cd_json_write_open(w, '{');
    cd_json_write_member_int(w, "n", (int64_t)f->n);
    cd_json_write_member_real(w, "mape", f->mape);
    cd_json_write_member_real(w, "median_ape", f->median);
    cd_json_write_member_real(w, "mean_abs_ln", f->mean_log);
    cd_json_write_member_int(w, "with_interval", (int64_t)f->ranged);
    cd_json_write_member_real(w, "inside_interval", f->inside);
    cd_json_write_close(w, '}');
}

static void put_json_law(cd_json_writer *w, const cd_network_cost_fit *f) {
    cd_json_write_key(w, "networks");
    cd_json_write_open(w, '{');
    cd_json_write_member_int(w, "n", f->networks);
    cd_json_write_member_real(w, "lift", f->lift);
    cd_json_write_member_real(w, "lift_from", f->lift_from);
    cd_json_write_member_real(w, "call_s", f->call_s);
    cd_json_write_member_real(w, "refill_bytes_per_s", f->refill_bytes_per_s);
    cd_json_write_member_real(w, "refill_to", f->refill_to);
    cd_json_write_member_real(w, "refill_from", f->refill_from);
    cd_json_write_member_real(w, "spread", f->spread);
    cd_json_write_close(w, '}');
}

static void put_text(cd_json_writer *w, const char *key, const cd_calibrate_told *t,
                     void (*put)(cd_buf *b, const cd_calibrate_told *t)) {
    cd_buf b = {0};
    put(&b, t);
    cd_json_write_member_str(w, key, b.p);
    if (b.oom) w->out->oom = true;
    cd_buf_free(&b);
}

static void put_run(cd_json_writer *w, const cd_calibrate_told *t) {
    cd_json_write_member_str(w, "device", t->device);
    cd_json_write_member_str(w, "name", t->name);
    cd_json_write_member_str(w, "cpu", t->cpu);
    cd_json_write_member_str(w, "model", t->model);
    cd_json_write_member_str(w, "records", t->log);
    cd_json_write_member_str(w, "out", t->out);
    cd_json_write_member_real(w, "seconds", t->seconds);
    cd_json_write_member_real(w, "limit_s", t->limit_s);
    cd_json_write_member_int(w, "measured_now", (int64_t)t->measured->fresh);
    cd_json_write_member_int(w, "repeated_now", (int64_t)t->measured->repeats);
    cd_json_write_member_int(w, "programs", (int64_t)t->result->programs);
    cd_json_write_member_real(w, "widen", t->result->widen);
    cd_json_write_member_real(w, "most", t->result->most);
    put_text(w, "verdict", t, put_verdict);
    put_text(w, "next", t, put_next);
}

void cd_calibrate_members(cd_buf *b, const cd_calibrate_told *t, bool file) {
    const cd_calibrate_result *r = t->result;
    cd_buf all = {0};
    cd_json_writer w = {.out = &all};
    cd_json_write_open(&w, '{');
    if (!file) put_run(&w, t);
    cd_json_write_member_int(&w, "measured", (int64_t)r->programs);
    cd_json_write_member_int(&w, "tasks", (int64_t)r->tasks);
    cd_json_write_member_int(&w, "unusable", (int64_t)r->failed);
    cd_json_write_member_int(&w, "pairs", (int64_t)r->pairs);
    cd_json_write_member_real(&w, "noise", r->noise);
    if (!file) cd_json_write_member_real(&w, "measured_noise", r->measured_noise);
    cd_json_write_member_real(&w, "share_of_trees", r->share);
    if (!file) cd_json_write_member_real(&w, "picks", r->picks);
    if (t->costs && t->costs->networks) put_json_law(&w, t->costs);
    put_figures(&w, "before", &r->before);
    put_figures(&w, "after", &r->after);
    cd_json_write_close(&w, '}');
    if (all.n > 2) cd_buf_put(b, all.p + 1, all.n - 2);
    if (all.oom) b->oom = true;
    cd_buf_free(&all);
}
