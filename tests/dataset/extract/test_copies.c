/* Copies of programs: their identity, runs that are slow as a whole, and a data set in which each
 * program is once. */
#include <stdlib.h>

#include "check.h"
#include "dataset/extract/copies_internal.h"
#include "fault.h"
#include "made_items.h"
#include "scratch.h"

static cdmpp_err err;

/* ---- identity ---- */

static void id_of(const char *target, const char *hardware, const char *steps, const char *device,
                  uint64_t id[2]) {
    cd_arena a = {0};
    cd_record r;
    char line[500];
    const int n = snprintf(line, sizeof line,
                           "{\"i\": [[\"[\\\"k\\\", 1]\", \"%s\", [%s], \"\", 1, []], [[], [%s]]], "
                           "\"r\": [[1e-6], 0, 1, 1], \"v\": \"v0.6\"}",
                           target, hardware, steps);
    assert_ok(cd_record_read(&a, line, (size_t)n, &r, &err));
    cd_program_id_of(&r, made_str(device), id);
    cd_arena_free(&a);
}

#define HW    "1, 64, 64, 0, 0, 0, 0, 0"
#define STEPS "[\"SP\", 2, 0, 512, [4, 8], 1], [\"PR\", 2, 0, \"auto_unroll_max_step$16\"]"

/* The extent that a step notes may be that of the shape for which the schedule was found: the
 * program is the same. */
TEST(identity) {
    static const char *const other[][4] = {
        {"llvm -x", HW, STEPS, "d"},
        {"llvm", "2, 64, 64, 0, 0, 0, 0, 0", STEPS, "d"},
        {"llvm", HW, STEPS, "e"},
        {"llvm", HW, "[\"SP\", 2, 0, 512, [4, 4], 1], [\"PR\", 2, 0, \"auto_unroll_max_step$16\"]",
         "d"},
        {"llvm", HW, "[\"SP\", 2, 0, 512, [4, 8], 0], [\"PR\", 2, 0, \"auto_unroll_max_step$16\"]",
         "d"},
        {"llvm", HW, "[\"SP\", 2, 0, 512, [4, 8], 1], [\"PR\", 2, 0, \"auto_unroll_max_step$64\"]",
         "d"},
        {"llvm", HW, "[\"SP\", 2, 0, 512, [4, 8], 1]", "d"}};
    uint64_t id[2], x[2];
    id_of("llvm", HW, STEPS, "d", id);
    id_of("llvm", HW, "[\"SP\", 2, 0, 100, [4, 8], 1], [\"PR\", 2, 0, \"auto_unroll_max_step$16\"]",
          "d", x);
    assert_memory_equal(x, id, sizeof id);
    for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
        id_of(other[k][0], other[k][1], other[k][2], other[k][3], x);
        assert_true(x[0] != id[0] && x[1] != id[1]);
    }
}

/* ---- runs ---- */

enum { N_RUN = 6, N_SHARED = 300 };

/* Program i was measured by runs i % 4 and (i / 4) % 3 of the first four; run 3 takes 1.9 times as
 * long, and so does one program in ten everywhere. Runs 4 and 5 share programs with each other
 * alone. */
static size_t make_points(cd_run_point *p, size_t n_pair) {
    size_t n = 0;
    for (uint32_t i = 0; i < N_SHARED; i++) {
        const uint32_t run[] = {i % 4, (i / 4) % 3};
        for (int k = 0; k < 2 && run[0] != run[1]; k++)
            p[n++] = (cd_run_point){i, run[k],
                                    log((1 + i) * (run[k] == 3 ? 1.9 : 1) *
                                        (1 + 0.01 * (double)((i * 7 + run[k] * 3) % 5)) *
                                        ((i + run[k]) % 10 ? 1 : 1.9))};
    }
    for (uint32_t i = 0; i < n_pair; i++)
        for (uint32_t k = 4; k < 6; k++)
            p[n++] = (cd_run_point){N_SHARED + i, k, log((1 + i) * (k == 4 ? 1.5 : 1))};
    return n;
}

TEST(slow_runs_are_found) {
    static cd_run_point p[4 * N_SHARED];
    cd_run_scale s[N_RUN];
    size_t n = make_points(p, CD_RUN_LEAST_SHARED);
    assert_ok(cd_copies_scale(p, n, N_RUN, s, &err));
    for (int r = 0; r < 3; r++) assert_close(s[r].factor, 1, 0.03, 0);
    assert_close(s[3].factor, 1.9, 0.03, 0);
    assert_close(s[4].factor, 1.5, 1e-9, 0); /* of two alone the faster one is right */
    assert_close(s[5].factor, 1, 1e-9, 0);
    assert_int_equal(s[4].n_shared, CD_RUN_LEAST_SHARED);
    n = make_points(p, CD_RUN_LEAST_SHARED - 1); /* too few to judge */
    assert_ok(cd_copies_scale(p, n, N_RUN, s, &err));
    assert_close(s[4].factor, 1, 0, 0);
    assert_close(s[3].factor, 1.9, 0.03, 0);
    assert_ok(cd_copies_scale(p, 0, 2, s, &err));
    assert_close(s[0].factor, 1, 0, 0);
}

/* ---- a data set ---- */

enum { N_ITEM = 700, N_ID = 231, CUT = 400, SLOW_RUN = 3 };

/* Item i is program i % N_ID, measured by run i % 5, of which one is slow; the last items are
 * programs of their own. */
static unsigned id_number(unsigned i) { return i < 650 ? i % N_ID : i; }
static void as_copy(made_item *m, unsigned i) {
    static uint64_t id[2];
    static const int32_t no_step[1];
    cd_item *it = &m->it;
    id[0] = cd_rng_mix(id_number(i)), id[1] = id_number(i);
    it->id = id;
    make_steps(m, i);
    if (!it->step) it->step = no_step;
    snprintf(m->source, sizeof m->source, "logs/run%u/f.json", i % 5);
    it->text[CD_LAYOUT_DICT_SOURCE] = made_str(m->source);
    it->source_line = i + 1;
    if (it->error) return;
    it->latency_s = 1e-6 * (1 + id_number(i)) * (i % 5 == SLOW_RUN ? 2 : 1) * (1 + 0.001 * (i % 7));
    it->latency_mean_s = it->latency_s * 1.01, it->latency_std_s = it->latency_s * 0.1,
    it->latency_min_s = it->latency_s * 0.9;
}

static bool counts(unsigned i, double slow) { return slow == 0 || i % 5 != SLOW_RUN; }
static bool failed(unsigned i) { return i % 31 == 3; }

/* The label of all copies of item i, straight from the definition; false: item i does not stay. */
static bool label_of_copies(made_item *m, unsigned i, double slow, uint32_t *copies, double *low,
                            double *high) {
    static made_item x;
    double t[N_ITEM], sum = 0, sq = 0, least = 0;
    uint32_t n = 0, repeats = 0;
    unsigned stays = N_ITEM;
    for (unsigned k = 0; k < N_ITEM; k++) {
        if (id_number(k) != id_number(i) || !counts(k, slow)) continue;
        if (stays == N_ITEM || (failed(stays) && !failed(k))) stays = k;
        if (failed(k)) continue;
        make_item(&x, k);
        as_copy(&x, k);
        const double r = x.it.repeats, mean = x.it.latency_mean_s, sd = x.it.latency_std_s;
        sum += r * mean, sq += r * (sd * sd + mean * mean);
        least = repeats && least < x.it.latency_min_s ? least : x.it.latency_min_s;
        repeats += x.it.repeats;
        t[n++] = x.it.latency_s;
    }
    make_item(m, i);
    as_copy(m, i);
    *copies = n > 1 ? n : 1;
    *low = *high = m->it.latency_s;
    if (n > 1) {
        cd_sort_doubles(t, n);
        *low = t[0], *high = t[n - 1];
        m->it.latency_s = cd_sort_median(t, n);
        m->it.latency_mean_s = sum / repeats;
        m->it.latency_std_s =
            sqrt(fmax(0, sq / repeats - m->it.latency_mean_s * m->it.latency_mean_s));
        m->it.latency_min_s = least;
        m->it.repeats = repeats;
    }
    return stays == i;
}

static uint64_t write_expected(const char *path, double slow) {
    static made_item m;
    cd_writer *w;
    cd_buf place = {0};
    uint64_t n = 0;
    assert_ok(cd_writer_open(&w, path, made_print, true, NULL, &place, &err));
    for (unsigned i = 0; i < N_ITEM; i++) {
        uint32_t copies;
        double low, high;
        if (!label_of_copies(&m, i, slow, &copies, &low, &high)) continue;
        n++;
        assert_ok(cd_writer_add(w, &m.it, &err));
        assert_ok(cd_writer_push(w, CD_LAYOUT_ARRAY_COPIES, &copies, 1, &err));
        assert_ok(cd_writer_push(w, CD_LAYOUT_ARRAY_COPY_MIN, &low, 1, &err));
        assert_ok(cd_writer_push(w, CD_LAYOUT_ARRAY_COPY_MAX, &high, 1, &err));
    }
    assert_ok(cd_writer_finish(w, &made_finish, &err));
    cd_writer_free(w);
    cd_buf_free(&place);
    return n;
}

/* Checksums cover every element; so equal ones of all arrays and dictionaries are equal files. */
static void assert_same_contents(const char *a, const char *b) {
    cd_h5 x, y;
    assert_ok(cd_h5_open(&x, a, &err));
    assert_ok(cd_h5_open(&y, b, &err));
    for (int k = 0; k < CD_LAYOUT_ARRAY_COUNT + CD_LAYOUT_DICT_COUNT; k++) {
        const char *path = k < CD_LAYOUT_ARRAY_COUNT
                               ? cd_layout[k].path
                               : cd_layout_dict_path[k - CD_LAYOUT_ARRAY_COUNT];
        uint32_t c, d;
        assert_ok(cd_h5_get_u32(&x, path, CD_LAYOUT_ATTR_CRC, &c, &err));
        assert_ok(cd_h5_get_u32(&y, path, CD_LAYOUT_ATTR_CRC, &d, &err));
        if (c != d) print_error("%s\n", path);
        assert_int_equal(c, d);
    }
    assert_ok(cd_h5_close(&x, &err));
    assert_ok(cd_h5_close(&y, &err));
}

static const char **inputs(void) {
    static const char *in[2];
    in[0] = scratch("first.h5"), in[1] = scratch("second.h5");
    assert_ok(make_spoilt(in[0], 0, CUT, as_copy, &err));
    assert_ok(make_spoilt(in[1], CUT, N_ITEM, as_copy, &err));
    return in;
}

TEST(each_program_once) {
    const char **in = inputs(), *out = scratch("once.h5"), *want = scratch("want.h5");
    for (int k = 0; k < 2; k++) {
        const double slow = k ? 1.25 : 0;
        cd_extract_stats s;
        cd_copies_stats c;
        assert_ok(cd_merge_copies(out, in, 2, slow, "test", NULL, &s, &c, &err));
        const uint64_t n = write_expected(want, slow);
        assert_same_contents(out, want);
        assert_int_equal(s.programs, n);
        assert_int_equal(c.programs, n);
        assert_int_equal(s.records, N_ITEM);
        assert_int_equal(c.slow_runs, k);
        assert_int_equal(c.left_out, k ? N_ITEM / 5 : 0);
        assert_true(k ? c.spread_median < 1.01 : c.spread_p90 > 1.9);
    }
}

/* ---- parts ---- */

static void assert_same_copies(const cd_copies *a, const cd_copies *b) {
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_label, b->n_label);
    assert_memory_equal(a->keep, b->keep, a->n);
    assert_memory_equal(a->label_of, b->label_of, a->n * sizeof *a->label_of);
    for (size_t k = 0; k < a->n_label; k++)
        assert_memory_equal(&a->label[k], &b->label[k],
                            offsetof(cd_copy_label, copies) + sizeof a->label->copies);
    assert_memory_equal(&a->stats, &b->stats, sizeof a->stats);
}

/* Every record is in one part, and parts one after another are in the order of identities. */
TEST(parts_hold_every_record) {
    const char **in = inputs();
    static bool seen[N_ITEM];
    for (size_t records = 1; records <= 2 * N_ITEM; records *= 10) {
        cd_copies_scan s;
        cd_copies_entry last = {0};
        size_t n = 0;
        memset(seen, 0, sizeof seen);
        assert_ok(cd_copies_scan_open(&s, in, 2, records, &err));
        assert_int_equal(s.n, N_ITEM);
        assert_int_equal(s.n_part, records == 1 || records == 10 ? 16 : records == 100 ? 8 : 1);
        for (uint32_t p = 0; p < s.n_part; p++) {
            assert_ok(cd_copies_scan_part(&s, p, &err));
            /* no part has nearly all */
            assert_in_range(s.n_e, 1, s.n_part > 1 ? N_ITEM / 3 : N_ITEM);
            for (size_t i = 0; i < s.n_e; i++, n++) {
                const cd_copies_entry *e = &s.e[i];
                assert_true(last.id[0] <= e->id[0] && !seen[e->program]);
                assert_int_equal(e->id[1], id_number((unsigned)e->program));
                seen[e->program] = true;
                last = *e;
            }
        }
        assert_int_equal(n, N_ITEM);
        cd_copies_scan_close(&s);
    }
}

TEST(parts_change_nothing) {
    const char **in = inputs();
    static const size_t records[] = {1, 100, 300};
    for (size_t k = 0; k < 6; k++) {
        cd_copies whole, parts;
        const double slow = k % 2 ? 1.25 : 0;
        assert_ok(cd_copies_find(in, 2, slow, CD_COPIES_PART_RECORDS, NULL, &whole, &err));
        assert_ok(cd_copies_find(in, 2, slow, records[k / 2], NULL, &parts, &err));
        assert_true(whole.stats.several > 100 && whole.n_label > 100);
        assert_same_copies(&whole, &parts);
        cd_copies_free(&whole);
        cd_copies_free(&parts);
    }
}

/* All records are of one program: a part that is far larger than the others. */
static void as_one(made_item *m, unsigned i) {
    static const uint64_t id[2] = {5, 6};
    as_copy(m, i);
    m->it.id = id;
}

TEST(a_part_may_hold_all) {
    const char *in = scratch("one.h5");
    cd_copies c;
    assert_ok(make_spoilt(in, 0, N_ITEM, as_one, &err));
    assert_ok(cd_copies_find(&in, 1, 0, 1, NULL, &c, &err));
    assert_int_equal(c.n, N_ITEM);
    assert_int_equal(c.stats.programs, 1);
    assert_int_equal(c.n_label, 1);
    assert_int_equal(c.label->copies, c.stats.records_of_several);
    assert_int_equal(c.keep[c.label->program], 1);
    cd_copies_free(&c);
}

/* A file that is replaced between two parts would be read beyond the arrays. */
TEST(a_file_that_changes) {
    const char **in = inputs();
    char want[400];
    cd_copies_scan s;
    snprintf(want, sizeof want, "%s: the file has changed since it was read first [ESCHEMA]",
             in[1]);
    assert_ok(cd_copies_scan_open(&s, in, 2, 100, &err));
    assert_ok(cd_copies_scan_part(&s, 0, &err));
    assert_ok(make_spoilt(in[1], CUT - 1, N_ITEM, as_copy, &err));
    assert_error(cd_copies_scan_part(&s, 1, &err), want);
    cd_copies_scan_close(&s);
}

TEST(what_is_refused) {
    cd_extract_stats s;
    cd_copies_stats c;
    const char **in = inputs();
    const char *out = scratch("out.h5");
    const char *plain[] = {scratch("plain.h5"), NULL};
    const char *again[] = {scratch("merged.h5"), NULL};
    char want[400];
    assert_ok(make_file(plain[0], 0, 20, &err));
    snprintf(want, sizeof want,
             "%s: /key/program: the file has no identities of programs: extract the logs again, "
             "with cdmpp-extract --ids [ENODATA]",
             plain[0]);
    assert_error(cd_merge_copies(out, plain, 1, 0, "test", NULL, &s, &c, &err), want);
    assert_ok(cd_merge_copies(again[0], in, 2, 0, "test", NULL, &s, &c, &err));
    snprintf(want, sizeof want,
             "%s: /key/program: copies are merged already: give the files of before [ENODATA]",
             again[0]);
    assert_error(cd_merge_copies(out, again, 1, 0, "test", NULL, &s, &c, &err), want);
    again[1] = in[0];
    snprintf(want, sizeof want,
             "%s: /label/copies: some files have merged copies (cdmpp-extract --merge-copies) and "
             "others have not [ESCHEMA]",
             in[0]);
    assert_error(cd_merge(out, again, 2, "test", &s, &err), want);
    assert_int_not_equal(access(out, F_OK), 0);
}

TEST(out_of_memory) {
    const char *in[] = {scratch("few.h5"), scratch("few_more.h5")}, *out = scratch("few_once.h5");
    assert_ok(make_spoilt(in[0], 200, 240, as_copy, &err));
    assert_ok(make_spoilt(in[1], 440, 470, as_copy, &err));
    FAULT_SWEEP(f, 1) {
        cd_extract_stats s;
        cd_copies_stats c;
        f.st = cd_merge_copies(out, in, 2, 1.25, "test", NULL, &s, &c, &f.err);
    }
}

TEST(out_of_memory_in_parts) {
    const char *in[] = {scratch("few.h5"), scratch("few_more.h5")};
    assert_ok(make_spoilt(in[0], 200, 240, as_copy, &err));
    assert_ok(make_spoilt(in[1], 440, 470, as_one, &err));
    FAULT_SWEEP(f, 1) {
        cd_copies c;
        f.st = cd_copies_find(in, 2, 1.25, 20, NULL, &c, &f.err);
        if (!f.st) cd_copies_free(&c);
    }
}

TESTS(NULL, NULL, identity, slow_runs_are_found, each_program_once, parts_hold_every_record,
      parts_change_nothing, a_part_may_hold_all, a_file_that_changes, what_is_refused,
      out_of_memory, out_of_memory_in_parts)
