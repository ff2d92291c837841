/* What cdmpp-tune tells: a table for people, or one JSON object; --stats. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/cmd/tune/main_tune.h"

enum { NAME = 36 };

static void put_str(cd_buf *b, const char *key, const char *text) {
    cd_buf_putf(b, "\"%s\":", key);
    cd_buf_put_json_str(b, text, strlen(text));
}

/* Seconds, or null where there are none. */
static void put_s(cd_buf *b, const char *key, double s) {
    cd_buf_putf(b, ",\"%s\":", key);
    cd_buf_put_json_real(b, s < CD_TUNE_FAILED_S ? s : HUGE_VAL);
}

/* ---- rounds ---- */
cdmpp_status cd_main_tune_stats(cd_main_tune_live *l, const cd_tune_round *r, cdmpp_err *err) {
    const cd_tune_task_scheduler *sched = cd_tune_run_sched(l->run);
    cd_buf b = {0};
    if (!l->stats) return CDMPP_OK;
    cd_buf_putf(&b, "{\"schema\":\"cdmpp.tune_round\",\"round\":%u,\"task\":%u,", r->number, r->task);
    put_str(&b, "workload_key", l->what->unit[r->task].of.task->workload_key);
    cd_buf_putf(&b, ",\"n\":%zu,\"failed\":%zu,\"trials\":%llu,\"task_trials\":%llu", r->n, r->failed, (unsigned long long)r->trials, (unsigned long long)r->task_trials);
    put_s(&b, "best_s", r->best_s);
    put_s(&b, "search_s", r->search_s);
    put_s(&b, "measure_s", r->measure_s);
    put_s(&b, "build_s", r->build_s);
    put_s(&b, "run_s", r->run_s);
    put_s(&b, "total_s", r->without ? HUGE_VAL : r->total_s);
    put_s(&b, "gain_s", cd_tune_task_scheduler_gain(sched, r->task));
    put_s(&b, "gradient", cd_tune_task_scheduler_gradient(sched, r->task));
    cd_buf_puts(&b, "}\n");
    const bool good = !b.oom && fwrite(b.p, 1, b.n, l->stats) == b.n && fflush(l->stats) == 0;
    cd_buf_free(&b);
    return good ? CDMPP_OK : cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)), l->o->stats, 0);
}

/* ---- complaints ---- */
static void complain(cd_main_tune_live *l, uint32_t i) {
    const cd_tune_task_state *s = l->run ? cd_tune_run_state(l->run, i) : NULL;
    const cd_tune_result *r = &l->result[i];
    const char *name = l->what->unit[i].name;
    cd_log *log = l->o->log;
    if (s && s->n_point && s->failed == s->n_point) {
        l->o->bad++;
        cd_log_put(log, CD_LOG_WARNING, "%s: every one of %zu candidates failed, the last with error %d", name, s->failed, s->last_error);
    }
    if (r->verdict == CD_TUNE_WORSE)
        cd_log_put(log, CD_LOG_WARNING, "%s: worse after tuning, %.4g ms against %.4g ms: the untuned program is kept", name, r->tuned.seconds * 1e3, r->untuned.seconds * 1e3);
    if (r->verdict == CD_TUNE_WRONG || r->verdict == CD_TUNE_FAILS) {
        l->o->bad++;
        cd_log_put(log, CD_LOG_WARNING, "%s: the best candidate %s: %.160s; the untuned program is kept", name, r->verdict == CD_TUNE_WRONG ? "is wrong" : "does not run", r->tuned.why.msg);
    }
    if (r->verdict != CD_TUNE_NONE) return;
    l->o->bad++;
    cd_log_put(log, CD_LOG_WARNING, "%s has no program that runs: %.160s", name, r->untuned.why.msg);
}

/* Sums of weight x time; false: some task has none. */
static bool totals(const cd_main_tune_live *l, double *untuned, double *kept) {
    bool all = true;
    *untuned = *kept = 0;
    for (uint32_t i = 0; i < l->what->n; i++) {
        const double w = l->what->unit[i].weight;
        const cd_tune_side *k = cd_tune_result_kept(&l->result[i]);
        all &= k && l->result[i].untuned.seconds < CD_TUNE_FAILED_S;
        *untuned += w * l->result[i].untuned.seconds;
        if (k) *kept += w * k->seconds;
    }
    return all;
}

/* ---- for people ---- */
static void put_ms(cd_buf *b, double s) {
    if (s < CD_TUNE_FAILED_S) cd_buf_putf(b, " %10.4g", s * 1e3);
    else cd_buf_puts(b, "          -");
}

static void row(cd_buf *b, const cd_main_tune_live *l, uint32_t i) {
    const cd_tune_result *r = &l->result[i];
    const cd_tune_task_state *s = l->run ? cd_tune_run_state(l->run, i) : NULL;
    cd_buf_putf(b, "%-*.*s %6g %7zu", NAME, NAME, l->what->unit[i].name, l->what->unit[i].weight, s ? s->n_point : 0);
    put_ms(b, r->untuned.seconds);
    put_ms(b, r->tuned.seconds);
    if (r->untuned.seconds < CD_TUNE_FAILED_S && r->tuned.seconds < CD_TUNE_FAILED_S) cd_buf_putf(b, " %7.2f", r->untuned.seconds / r->tuned.seconds);
    else cd_buf_puts(b, "       -");
    cd_buf_putf(b, "  %s\n", cd_tune_verdict_name(r->verdict));
}

static void text(cd_buf *b, const cd_main_tune_live *l) {
    double before, after;
    cd_buf_putf(b, "%-*s %6s %7s %10s %10s %7s  %s\n", NAME, "task", "weight", "trials", "untuned ms", "tuned ms", "ratio", "verdict");
    for (uint32_t i = 0; i < l->what->n; i++) row(b, l, i);
    if (totals(l, &before, &after)) cd_buf_putf(b, "sum of weight x time: %.4g ms untuned, %.4g ms kept, ratio %.2f\n", before * 1e3, after * 1e3, before / after);
    if (!l->run) return;
    const cd_tune_times *t = cd_tune_run_times(l->run);
    cd_buf_putf(b, "%s: %zu trials in %u rounds, %s\n", l->tuner->name, t->trials, t->rounds, cd_tune_task_scheduler_says(l->end));
    if (t->trials)
        cd_buf_putf(b, "%.1f s: search %.1f s (%.1f %%), compiling %.1f s, running %.1f s\n", t->wall_s, t->search_s, 100 * (t->wall_s - t->measure_s) / t->wall_s, t->build_s, t->run_s);
}

/* ---- as JSON ---- */
static void json_task(cd_buf *b, const cd_main_tune_live *l, uint32_t i) {
    const cd_tune_unit *u = &l->what->unit[i];
    const cd_tune_result *r = &l->result[i];
    const cd_tune_task_state *s = l->run ? cd_tune_run_state(l->run, i) : NULL;
    cd_buf_puts(b, i ? ",{" : "{");
    put_str(b, "workload_key", u->of.task->workload_key);
    cd_buf_puts(b, ",");
    put_str(b, "name", u->name);
    cd_buf_putf(b, ",\"weight\":%g,\"flop\":", u->weight);
    cd_buf_put_json_real(b, u->of.flop >= 0 ? u->of.flop : HUGE_VAL);
    if (s) {
        cd_buf_putf(b, ",\"trials\":%zu,\"before\":%zu,\"failed\":%zu,\"warm\":%zu,\"naive\":%s", s->n_point, s->before, s->failed, s->warm, s->naive ? "true" : "false");
        put_s(b, "best_s", s->best_s);
    }
    put_s(b, "untuned_s", r->untuned.seconds);
    put_s(b, "tuned_s", r->tuned.seconds);
    if (r->tuned.checked) {
        cd_buf_puts(b, ",\"max_error\":");
        cd_buf_put_json_real(b, r->tuned.max_error);
    }
    cd_buf_putf(b, ",\"verdict\":\"%s\"}", cd_tune_verdict_name(r->verdict));
}

static void json(cd_buf *b, const cd_main_tune_live *l) {
    double before, after;
    const bool all = totals(l, &before, &after);
    cd_buf_puts(b, "{\"tasks\":[");
    for (uint32_t i = 0; i < l->what->n; i++) json_task(b, l, i);
    cd_buf_puts(b, "]");
    put_s(b, "untuned_total_s", all ? before : HUGE_VAL);
    put_s(b, "kept_total_s", all ? after : HUGE_VAL);
    if (l->run) {
        const cd_tune_times *t = cd_tune_run_times(l->run);
        cd_buf_puts(b, ",");
        put_str(b, "tuner", l->tuner->name);
        cd_buf_putf(b, ",\"trials\":%zu,\"rounds\":%u,", t->trials, t->rounds);
        put_str(b, "end", cd_tune_task_scheduler_says(l->end));
        put_s(b, "wall_s", t->wall_s);
        put_s(b, "search_s", t->search_s);
        put_s(b, "measure_s", t->measure_s);
        put_s(b, "build_s", t->build_s);
        put_s(b, "run_s", t->run_s);
        put_s(b, "outside_measuring", t->wall_s > 0 ? (t->wall_s - t->measure_s) / t->wall_s : HUGE_VAL);
    }
    cd_buf_puts(b, "}");
}

cdmpp_status cd_main_tune_text(cd_main_tune_live *l, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    for (uint32_t i = 0; i < l->what->n; i++) complain(l, i);
    if (!l->o->json) {
        text(&b, l);
        return cd_command_print(&b, err);
    }
    json(&b, l);
    cd_command_json(&all, "cdmpp.tune", "cdmpp-tune", &b);
    return cd_command_print(&all, err);
}

/* ---- --dry-run ---- */
cdmpp_status cd_main_tune_text_tasks(const cd_main_tune *o, const cd_main_tune_tasks *t, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    if (!o->json) cd_buf_putf(&b, "%-*s %6s %10s  %s\n", NAME, "task", "weight", "MFLOP", "target");
    else cd_buf_puts(&b, "{\"tasks\":[");
    for (uint32_t i = 0; i < t->n; i++) {
        const cd_tune_unit *u = &t->unit[i];
        if (!o->json) {
            cd_buf_putf(&b, "%-*.*s %6g ", NAME, NAME, u->name, u->weight);
            if (u->of.flop < 0) cd_buf_puts(&b, "         -");
            else cd_buf_putf(&b, "%10.4g", u->of.flop * 1e-6);
            cd_buf_putf(&b, "  %s\n", u->of.target);
            continue;
        }
        cd_buf_puts(&b, i ? ",{" : "{");
        put_str(&b, "workload_key", u->of.task->workload_key);
        cd_buf_puts(&b, ",");
        put_str(&b, "target", u->of.target);
        cd_buf_putf(&b, ",\"weight\":%g}", u->weight);
    }
    if (!o->json) return cd_command_print(&b, err);
    cd_buf_puts(&b, "]}");
    cd_command_json(&all, "cdmpp.tune", "cdmpp-tune", &b);
    return cd_command_print(&all, err);
}
