/* The results of a session, and the tasks that it would have. */
#include <math.h>
#include <string.h>

#include "predictor/tune/report/report.h"

enum { NAME = 36, SHAPES = 56 };

/* ---- for people ---- */
static void put_ms(cd_buf *b, double s) {
    if (s < CD_TUNE_FAILED_S) cd_buf_putf(b, " %10.4g", s * 1e3);
    else cd_buf_puts(b, "          -");
}

/* "[1,15,15,64],[1,1,64,16]": a workload key without its hash and its blanks. Two tasks of the same
 * operators differ in it. */
static void put_shapes(cd_buf *b, const char *key) {
    const char *hash = strstr(key, "\","), *s = hash ? hash + 2 : key,
               *end = key + strlen(key) - (hash != NULL);
    const size_t from = b->n;
    for (; s < end && b->n - from < SHAPES; s++)
        if (*s != ' ') cd_buf_put(b, s, 1);
    if (s < end) cd_buf_puts(b, "...");
}

/* Of the program that is kept; 0: not known. */
static double gflops_of(const cd_tune_session *s, uint32_t i) {
    const cd_tune_side *kept = cd_tune_result_kept(&s->result[i]);
    const double flop = s->what->unit[i].of.flop;
    return kept && flop > 0 && kept->seconds > 0 && kept->seconds < CD_TUNE_FAILED_S
               ? flop / kept->seconds * 1e-9
               : 0;
}

/* Of what its cores can do at most; 0: not known. */
static double peak_share(const cd_tune_session *s, uint32_t i) {
    const cd_tune_task *t = &s->what->unit[i].of;
    const double cores = t->gpu || t->hardware.num_cores < 1 ? 1 : (double)t->hardware.num_cores;
    return s->peak_gflops > 0 ? gflops_of(s, i) / (s->peak_gflops * cores) : 0;
}

static void put_speed(cd_buf *b, const cd_tune_session *s, uint32_t i) {
    const double gflops = gflops_of(s, i);
    if (gflops > 0) cd_buf_putf(b, " %8.4g", gflops);
    else cd_buf_puts(b, "        -");
    if (!(s->peak_gflops > 0)) return;
    if (gflops > 0) cd_buf_putf(b, " %7.1f", 100 * peak_share(s, i));
    else cd_buf_puts(b, "       -");
}

static void row(cd_buf *b, const cd_tune_session *s, uint32_t i) {
    const cd_tune_result *r = &s->result[i];
    const cd_tune_task_state *t = cd_tune_session_state(s, i);
    cd_buf_putf(b, "%-*.*s %6g %7zu", NAME, NAME, s->what->unit[i].name, s->what->unit[i].weight,
                t ? t->n_point : 0);
    put_ms(b, r->untuned.seconds);
    put_ms(b, r->tuned.seconds);
    if (r->untuned.seconds < CD_TUNE_FAILED_S && r->tuned.seconds < CD_TUNE_FAILED_S)
        cd_buf_putf(b, " %7.2f", r->untuned.seconds / r->tuned.seconds);
    else cd_buf_puts(b, "       -");
    put_speed(b, s, i);
    cd_buf_putf(b, "  %-8s ", cd_tune_verdict_name(r->verdict));
    put_shapes(b, s->what->unit[i].of.task->workload_key);
    cd_buf_puts(b, "\n");
}

static void put_run(cd_buf *b, const cd_tune_session *s) {
    const cd_tune_times *t = cd_tune_run_times(s->run);
    cd_buf_putf(b, "%s: %zu trials in %u rounds, %s\n", s->tuner->name, t->trials, t->rounds,
                cd_tune_task_scheduler_says(s->end));
    if (t->trials)
        cd_buf_putf(b, "%.1f s: search %.1f s (%.1f %%), compiling %.1f s, running %.1f s\n",
                    t->wall_s, t->search_s, 100 * (t->wall_s - t->measure_s) / t->wall_s,
                    t->build_s, t->run_s);
}

void cd_tune_session_print_text(cd_buf *b, const cd_tune_session *s) {
    double before, after;
    cd_buf_putf(b, "%-*s %6s %7s %10s %10s %7s %8s%s  %-8s %s\n", NAME, "task", "weight", "trials",
                "untuned ms", "tuned ms", "ratio", "GFLOP/s", s->peak_gflops > 0 ? "  peak %" : "",
                "verdict", "shapes");
    for (uint32_t i = 0; i < s->what->n; i++) row(b, s, i);
    if (cd_tune_session_totals(s, &before, &after))
        cd_buf_putf(b, "sum of weight x time: %.4g ms untuned, %.4g ms kept, ratio %.2f\n",
                    before * 1e3, after * 1e3, before / after);
    if (s->run) put_run(b, s);
    if (s->use) cd_buf_putf(b, "To use it:\n  %s\n", s->use);
}

/* ---- as JSON ---- */
/* Seconds, or null where there are none. */
static void seconds(cd_json_writer *w, const char *key, double s) {
    cd_json_write_member_real(w, key, s < CD_TUNE_FAILED_S ? s : HUGE_VAL);
}

static void weight(cd_json_writer *w, double v) {
    cd_json_write_key(w, "weight");
    cd_buf_putf(w->out, "%g", v);
    w->comma = true;
}

/* Members about the search are absent where nothing was tuned; max_error where the program was not
 * compared with the reference. */
static void json_task(cd_json_writer *w, const cd_tune_session *s, uint32_t i) {
    const cd_tune_unit *u = &s->what->unit[i];
    const cd_tune_result *r = &s->result[i];
    const cd_tune_task_state *t = cd_tune_session_state(s, i);
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "workload_key", u->of.task->workload_key);
    cd_json_write_member_str(w, "name", u->name);
    weight(w, u->weight);
    cd_json_write_member_real(w, "flop", u->of.flop >= 0 ? u->of.flop : HUGE_VAL);
    if (t) {
        cd_json_write_member_int(w, "trials", (int64_t)t->n_point);
        cd_json_write_member_int(w, "before", (int64_t)t->before);
        cd_json_write_member_int(w, "failed", (int64_t)t->failed);
        cd_json_write_member_int(w, "warm", (int64_t)t->warm);
        cd_json_write_member_bool(w, "naive", t->naive);
        seconds(w, "best_s", t->best_s);
    }
    seconds(w, "untuned_s", r->untuned.seconds);
    seconds(w, "tuned_s", r->tuned.seconds);
    if (r->tuned.checked) cd_json_write_member_real(w, "max_error", r->tuned.max_error);
    const double gflops = gflops_of(s, i), share = peak_share(s, i);
    cd_json_write_member_real(w, "gflops", gflops > 0 ? gflops : HUGE_VAL);
    cd_json_write_member_real(w, "peak_share", share > 0 ? share : HUGE_VAL);
    cd_json_write_member_str(w, "verdict", cd_tune_verdict_name(r->verdict));
    cd_json_write_close(w, '}');
}

/* The totals are null where one task has no program: a sum without it would look too good. */
void cd_tune_session_print_json(cd_buf *b, const cd_tune_session *s) {
    double before, after;
    cd_json_writer w = {.out = b};
    const bool all = cd_tune_session_totals(s, &before, &after);
    cd_json_write_open(&w, '{');
    if (s->board)
        cd_json_write_member_str(&w, "host", cd_remote_measure_name(s->board)),
            cd_json_write_member_str(&w, "device", cd_remote_measure_about(s->board)->device);
    cd_json_write_key(&w, "tasks");
    cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < s->what->n; i++) json_task(&w, s, i);
    cd_json_write_close(&w, ']');
    seconds(&w, "untuned_total_s", all ? before : HUGE_VAL);
    seconds(&w, "kept_total_s", all ? after : HUGE_VAL);
    if (s->use) cd_json_write_member_str(&w, "use", s->use);
    if (s->run) {
        const cd_tune_times *t = cd_tune_run_times(s->run);
        cd_json_write_member_str(&w, "tuner", s->tuner->name);
        cd_json_write_member_int(&w, "trials", (int64_t)t->trials);
        cd_json_write_member_int(&w, "rounds", t->rounds);
        cd_json_write_member_str(&w, "end", cd_tune_task_scheduler_says(s->end));
        seconds(&w, "wall_s", t->wall_s);
        seconds(&w, "search_s", t->search_s);
        seconds(&w, "measure_s", t->measure_s);
        seconds(&w, "build_s", t->build_s);
        seconds(&w, "run_s", t->run_s);
        seconds(&w, "outside_measuring",
                t->wall_s > 0 ? (t->wall_s - t->measure_s) / t->wall_s : HUGE_VAL);
    }
    cd_json_write_close(&w, '}');
}

/* ---- tasks ---- */
void cd_tune_tasks_print_text(cd_buf *b, const cd_tune_tasks *t) {
    cd_buf_putf(b, "%-*s %6s %10s  %s\n", NAME, "task", "weight", "MFLOP", "shapes  target");
    for (uint32_t i = 0; i < t->n; i++) {
        const cd_tune_unit *u = &t->unit[i];
        cd_buf_putf(b, "%-*.*s %6g ", NAME, NAME, u->name, u->weight);
        if (u->of.flop < 0) cd_buf_puts(b, "         -");
        else cd_buf_putf(b, "%10.4g", u->of.flop * 1e-6);
        cd_buf_puts(b, "  ");
        put_shapes(b, u->of.task->workload_key);
        cd_buf_putf(b, "  %s\n", u->of.target);
    }
}

/* Only what a program needs to choose tasks: names for people are in the text. */
void cd_tune_tasks_print_json(cd_buf *b, const cd_tune_tasks *t) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "tasks");
    cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < t->n; i++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "workload_key", t->unit[i].of.task->workload_key);
        cd_json_write_member_str(&w, "target", t->unit[i].of.target);
        weight(&w, t->unit[i].weight);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
